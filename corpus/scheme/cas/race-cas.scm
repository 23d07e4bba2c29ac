;; Two swaps from the same old value; the one that fails is not retried, so the result depends on the order.
(define x 0)
(define left (spawn (cas x 0 1)))
(define right (spawn (cas x 0 2)))
(join left)
(join right)
x
