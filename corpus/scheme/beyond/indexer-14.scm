;; The indexer of Flanagan and Godefroid (dynamic partial-order reduction, 2005): each thread enters four messages into a shared hash
;; table, by cas and with linear probing. Up to eleven threads never meet in the table; fourteen do.
(define size 128)
(define table (make-vector size 0))
(define (hash w) (modulo (* w 7) size))
(define (insert w h)
  (if (cas-vector table h 0 w)
      'done
      (insert w (modulo (+ h 1) size))))
(define (worker tid)
  (let next ((m 1))
    (if (<= m 4)
        (let ((w (+ (* m 11) tid)))
          (insert w (hash w))
          (next (+ m 1)))
        'done)))
(define threads (map (lambda (tid) (spawn (worker tid))) (iota 14)))
(for-each (lambda (t) (join t)) threads)
