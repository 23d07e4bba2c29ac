;; Three threads increment a shared counter under a lock: correct.
(define lock #unlocked)
(define counter 0)
(define (inc)
  (acquire lock)
  (set! counter (+ counter 1))
  (release lock))
(define a (spawn (inc)))
(define b (spawn (inc)))
(define c (spawn (inc)))
(join a)
(join b)
(join c)
counter
