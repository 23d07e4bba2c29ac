;; Futures by hand: a ref that the thread fills, and a lock that is held until it has.
(define value (new-ref 0))
(define ready (new-lock))
(acquire ready)
(define worker
  (spawn (begin
           (ref-set value 42)
           (release ready))))
(define (force)
  (acquire ready)
  (let ((v (deref value)))
    (release ready)
    v))
(assert (= (force) 42))
(join worker)
