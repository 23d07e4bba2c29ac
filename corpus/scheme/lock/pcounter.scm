;; Two threads increment a shared counter under a lock: correct.
(define lock #unlocked)
(define counter 0)
(define (inc)
  (acquire lock)
  (set! counter (+ counter 1))
  (release lock))
(define left (spawn (inc)))
(define right (spawn (inc)))
(join left)
(join right)
counter
