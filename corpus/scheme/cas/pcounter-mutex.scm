;; A lock made of cas guards the counter: correct.
(define mutex #f)
(define (enter)
  (if (cas mutex #f #t)
      'entered
      (enter)))
(define (leave) (set! mutex #f))
(define counter 0)
(define (inc)
  (enter)
  (set! counter (+ counter 1))
  (leave))
(define left (spawn (inc)))
(define right (spawn (inc)))
(join left)
(join right)
counter
