;; Five threads, but each is joined before the next one starts.
(define counter 0)
(define (inc)
  (let* ((seen counter)
         (next (+ seen 1)))
    (if (cas counter seen next)
        'done
        (inc))))
(join (spawn (inc)))
(join (spawn (inc)))
(join (spawn (inc)))
(join (spawn (inc)))
(join (spawn (inc)))
counter
