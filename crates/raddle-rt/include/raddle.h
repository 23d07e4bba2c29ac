/* raddle.h: what a program can tell Raddle about itself.
 *
 * The functions exist when the program is linked by `raddle cc` / `raddle c++`. Without them (an ordinary build) the
 * macros below call nothing: the functions are weak.
 *
 * Licence: MIT OR Apache-2.0.
 */
#ifndef RADDLE_H
#define RADDLE_H

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((weak)) void raddle_event(const char *name, const void *object);
__attribute__((weak)) void raddle_atomic_begin(const char *name);
__attribute__((weak)) void raddle_atomic_end(const char *name);
__attribute__((weak)) int raddle_is_active(void);

#ifdef __cplusplus
}
#endif

/* An event of the program's own: RADDLE_EVENT("open", file). */
#define RADDLE_EVENT(name, object) \
    do { if (raddle_event) raddle_event((name), (const void *)(object)); } while (0)

/* A block that is meant to be atomic. The name may be a null pointer. */
#define RADDLE_ATOMIC_BEGIN(name) \
    do { if (raddle_atomic_begin) raddle_atomic_begin((name)); } while (0)
#define RADDLE_ATOMIC_END(name) \
    do { if (raddle_atomic_end) raddle_atomic_end((name)); } while (0)

#endif
