;; The worker uses the connection before the main thread has made it, if it is quick.
(define connection #f)
(define worker (spawn (if connection (car connection) (error "used before it was made"))))
(set! connection (list 'open))
(join worker)
