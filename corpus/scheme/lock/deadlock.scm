;; Two locks, taken in opposite orders.
(define first-lock #unlocked)
(define second-lock #unlocked)
(define left
  (spawn (begin
           (acquire first-lock)
           (acquire second-lock)
           (release second-lock)
           (release first-lock))))
(define right
  (spawn (begin
           (acquire second-lock)
           (acquire first-lock)
           (release first-lock)
           (release second-lock))))
(join left)
(join right)
