;; Each thread squares its share; the results come back through join, so nothing is shared.
(define (square x) (* x x))
(define (start x) (spawn (square x)))
(define a (start 1))
(define b (start 2))
(define c (start 3))
(define total (fold-left + 0 (map (lambda (t) (join t)) (list a b c))))
(assert (= total 14))
