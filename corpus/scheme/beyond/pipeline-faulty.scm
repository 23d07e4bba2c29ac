;; Two futures that wait for each other.
(define there (new-lock))
(define second #f)
(acquire there)
(define first (future (acquire there) (release there) (+ 1 (deref second))))
(set! second (future (+ 1 (deref first))))
(release there)
(deref first)
