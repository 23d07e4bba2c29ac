;; Whoever takes the lock first keeps it: the other one spins for ever.
(define mutex #f)
(define (enter)
  (if (cas mutex #f #t)
      'entered
      (enter)))
(define worker (spawn (enter)))
(enter)
(join worker)
