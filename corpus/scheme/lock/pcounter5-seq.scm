;; Five threads under a lock, each joined before the next one starts.
(define lock #unlocked)
(define counter 0)
(define (inc)
  (acquire lock)
  (set! counter (+ counter 1))
  (release lock))
(join (spawn (inc)))
(join (spawn (inc)))
(join (spawn (inc)))
(join (spawn (inc)))
(join (spawn (inc)))
counter
