;; Peterson's algorithm. Flags and turn are shared on purpose; the counter is safe.
(define wants-a #f)
(define wants-b #f)
(define turn 'a)
(define counter 0)
(define a
  (spawn (begin
           (set! wants-a #t)
           (set! turn 'b)
           (let wait () (if (and wants-b (eq? turn 'b)) (wait)))
           (set! counter (+ counter 1))
           (set! wants-a #f))))
(define b
  (spawn (begin
           (set! wants-b #t)
           (set! turn 'a)
           (let wait () (if (and wants-a (eq? turn 'a)) (wait)))
           (set! counter (+ counter 1))
           (set! wants-b #f))))
(join a)
(join b)
(assert (= counter 2))
