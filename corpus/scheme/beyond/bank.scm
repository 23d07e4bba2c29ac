;; Transfers that take the locks of two accounts in the order of their numbers. Accounts are records.
(define-record-type account
  (make-account number lock balance)
  account?
  (number account-number)
  (lock account-lock)
  (balance account-balance set-account-balance!))
(define a (make-account 1 (new-lock) 100))
(define b (make-account 2 (new-lock) 100))
(define (with-both x y thunk)
  (if (< (account-number y) (account-number x))
      (with-both y x thunk)
      (begin
        (acquire (account-lock x))
        (acquire (account-lock y))
        (thunk)
        (release (account-lock y))
        (release (account-lock x)))))
(define (transfer! from to n)
  (with-both from to
    (lambda ()
      (set-account-balance! from (- (account-balance from) n))
      (set-account-balance! to (+ (account-balance to) n)))))
(define threads (list (fork (transfer! a b 10)) (fork (transfer! b a 20))))
(for-each join threads)
(assert (= 110 (account-balance a)))
(assert (= 90 (account-balance b)))
