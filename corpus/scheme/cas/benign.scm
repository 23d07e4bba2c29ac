;; Two threads write the same value: a race without consequence.
(define ready #f)
(define (announce) (set! ready #t))
(define left (spawn (announce)))
(define right (spawn (announce)))
(join left)
(join right)
ready
