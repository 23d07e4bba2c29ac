;; Two locks made of cas, taken in opposite orders.
(define first-lock #f)
(define second-lock #f)
(define (enter-first)
  (if (cas first-lock #f #t)
      'entered
      (enter-first)))
(define (leave-first) (set! first-lock #f))
(define (enter-second)
  (if (cas second-lock #f #t)
      'entered
      (enter-second)))
(define (leave-second) (set! second-lock #f))
(define left
  (spawn (begin
           (enter-first)
           (enter-second)
           (leave-second)
           (leave-first))))
(define right
  (spawn (begin
           (enter-second)
           (enter-first)
           (leave-first)
           (leave-second))))
(join left)
(join right)
