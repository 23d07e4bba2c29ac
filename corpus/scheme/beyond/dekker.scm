;; Dekker's algorithm: mutual exclusion by plain reads and writes. The flags and the turn are accessed by both threads at
;; once, as the algorithm wants it; the counter never is.
(define wants-a #f)
(define wants-b #f)
(define turn 'a)
(define counter 0)
(define (enter-a)
  (set! wants-a #t)
  (let wait ()
    (if wants-b
        (begin
          (if (eq? turn 'b)
              (begin
                (set! wants-a #f)
                (let yield () (if (eq? turn 'b) (yield)))
                (set! wants-a #t)))
          (wait)))))
(define (leave-a)
  (set! turn 'b)
  (set! wants-a #f))
(define (enter-b)
  (set! wants-b #t)
  (let wait ()
    (if wants-a
        (begin
          (if (eq? turn 'a)
              (begin
                (set! wants-b #f)
                (let yield () (if (eq? turn 'a) (yield)))
                (set! wants-b #t)))
          (wait)))))
(define (leave-b)
  (set! turn 'a)
  (set! wants-b #f))
(define a (spawn (begin (enter-a) (set! counter (+ counter 1)) (leave-a))))
(define b (spawn (begin (enter-b) (set! counter (+ counter 1)) (leave-b))))
(join a)
(join b)
(assert (= counter 2))
