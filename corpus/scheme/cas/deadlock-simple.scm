;; A lock made of cas that is taken from the start is waited for.
(define mutex #t)
(define (enter)
  (if (cas mutex #f #t)
      'entered
      (enter)))
(enter)
