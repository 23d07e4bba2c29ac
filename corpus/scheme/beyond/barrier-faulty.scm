;; A barrier that counts without a lock: an arrival can be lost, and then both wait for ever.
(define arrived 0)
(define (arrive)
  (set! arrived (+ arrived 1))
  (let wait () (if (< arrived 2) (wait))))
(define a (spawn (arrive)))
(define b (spawn (arrive)))
(join a)
(join b)
