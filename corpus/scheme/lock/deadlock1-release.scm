;; The main thread releases the lock again, the worker does not: a deadlock when the worker comes first.
(define lock #unlocked)
(define worker (spawn (acquire lock)))
(acquire lock)
(release lock)
(join worker)
