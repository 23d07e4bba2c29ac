#ifndef PLAIN_LOCK_H
#define PLAIN_LOCK_H
struct plain_lock {
    int word;
};
void plain_acquire(struct plain_lock *lock);
void plain_release(struct plain_lock *lock);
#endif
