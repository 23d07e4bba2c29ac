;; A producer fills a shared list by cas; when it has ended, a consumer empties it.
(define items '())
(define (produce n)
  (if (= n 0)
      'produced
      (let ((seen items))
        (produce (if (cas items seen (cons n seen)) (- n 1) n)))))
(define (consume)
  (let ((seen items))
    (if (null? seen)
        'consumed
        (begin
          (cas items seen (cdr seen))
          (consume)))))
(define producer (spawn (produce 3)))
(join producer)
(define consumer (spawn (consume)))
(join consumer)
