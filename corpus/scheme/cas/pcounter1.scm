;; One thread increments a counter by a retried cas.
(define counter 0)
(define (inc)
  (let* ((seen counter)
         (next (+ seen 1)))
    (if (cas counter seen next)
        'done
        (inc))))
(define worker (spawn (inc)))
(join worker)
counter
