;; A swap against a plain write.
(define x 0)
(define left (spawn (cas x 0 1)))
(define right (spawn (set! x 2)))
(join left)
(join right)
x
