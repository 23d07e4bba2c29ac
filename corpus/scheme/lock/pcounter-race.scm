;; Nothing guards the counter: a read and a write race, and so do two writes.
(define counter 0)
(define (inc)
  (set! counter (+ counter 1)))
(define left (spawn (inc)))
(define right (spawn (inc)))
(join left)
(join right)
counter
