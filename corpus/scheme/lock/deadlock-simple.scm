;; The main thread takes its own lock twice.
(define lock #unlocked)
(acquire lock)
(acquire lock)
