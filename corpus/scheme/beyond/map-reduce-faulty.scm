;; The mappers add to one sum instead of returning their parts.
(define total 0)
(define (for-all f items)
  (for-each join (map (lambda (x) (fork (f x))) items)))
(for-all (lambda (x) (set! total (+ total (* x x)))) '(1 2 3))
(assert (= total 14))
