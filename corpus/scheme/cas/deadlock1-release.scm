;; The main thread leaves the lock again, the worker does not: a deadlock when the worker comes first.
(define mutex #f)
(define (enter)
  (if (cas mutex #f #t)
      'entered
      (enter)))
(define (leave) (set! mutex #f))
(define worker (spawn (enter)))
(enter)
(leave)
(join worker)
