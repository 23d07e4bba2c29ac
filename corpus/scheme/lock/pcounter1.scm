;; One thread increments a counter under a lock.
(define lock #unlocked)
(define counter 0)
(define (inc)
  (acquire lock)
  (set! counter (+ counter 1))
  (release lock))
(define worker (spawn (inc)))
(join worker)
counter
