;; Two threads increment a shared counter by a retried cas: correct.
(define counter 0)
(define (inc)
  (let* ((seen counter)
         (next (+ seen 1)))
    (if (cas counter seen next)
        'done
        (inc))))
(define left (spawn (inc)))
(define right (spawn (inc)))
(join left)
(join right)
counter
