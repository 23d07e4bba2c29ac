;; Three threads increment a shared counter by a retried cas: correct, for any number of threads.
(define counter 0)
(define (inc)
  (let* ((seen counter)
         (next (+ seen 1)))
    (if (cas counter seen next)
        'done
        (inc))))
(define a (spawn (inc)))
(define b (spawn (inc)))
(define c (spawn (inc)))
(join a)
(join b)
(join c)
counter
