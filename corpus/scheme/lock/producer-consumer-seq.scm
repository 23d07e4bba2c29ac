;; A producer fills a shared list under a lock; when it has ended, a consumer empties it.
(define lock #unlocked)
(define items '())
(define (produce n)
  (if (> n 0)
      (begin
        (acquire lock)
        (set! items (cons n items))
        (release lock)
        (produce (- n 1)))))
(define (consume taken)
  (acquire lock)
  (if (null? items)
      (begin
        (release lock)
        taken)
      (begin
        (set! items (cdr items))
        (release lock)
        (consume (+ taken 1)))))
(define producer (spawn (produce 3)))
(join producer)
(define consumer (spawn (consume 0)))
(join consumer)
