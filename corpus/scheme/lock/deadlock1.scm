;; Whoever takes the lock first keeps it: the other one waits for ever.
(define lock #unlocked)
(define worker (spawn (acquire lock)))
(acquire lock)
(join worker)
