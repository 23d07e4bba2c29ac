;; Futures that wait for the one before them.
(define (stage f before) (future (f (deref before))))
(define source (future 1))
(define added (stage (lambda (x) (+ x 1)) source))
(define scaled (stage (lambda (x) (* x 10)) added))
(assert (= 20 (deref scaled)))
(assert (equal? '(1 2 20) (map deref (list source added scaled))))
