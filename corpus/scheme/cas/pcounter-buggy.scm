;; The counter is read twice: what is written need not follow from what was compared.
(define counter 0)
(define (inc)
  (let* ((seen counter)
         (next (+ counter 1)))          ; the mistake: must be (+ seen 1)
    (if (cas counter seen next)
        'done
        (inc))))
(define left (spawn (inc)))
(define right (spawn (inc)))
(join left)
(join right)
counter
