;; Two may be inside. A macro takes the lock and gives it back.
(define-syntax with-lock
  (syntax-rules ()
    ((_ lock body ...)
     (begin
       (acquire lock)
       (let ((result (begin body ...)))
         (release lock)
         result)))))
(define lock (new-lock))
(define free 2)
(define inside 0)
(define (enter)
  (if (with-lock lock (if (> free 0) (begin (set! free (- free 1)) #t) #f))
      #t
      (enter)))
(define (leave) (with-lock lock (set! free (+ free 1))))
(define (work)
  (enter)
  (with-lock lock (set! inside (+ inside 1)) (assert (<= inside 2)))
  (with-lock lock (set! inside (- inside 1)))
  (leave))
(define threads (map (lambda (n) (fork (work))) '(1 2 3)))
(for-each join threads)
