//! What the runtime takes for granted about the inside of glibc's objects, looked at once before the program begins.
//!
//! Who holds a mutex, how often, and of which kind it is; who writes under a read-write lock; whether an initialiser has run: the runtime
//! reads these where glibc keeps them, because no function tells. A C library that keeps them elsewhere would make every word about
//! locks wrong, silently. So each of them is set by the library's own functions here and must be found where it is expected.

use super::{mutex, once, rwlock};
use crate::message;

/// Ends the program with a sentence if the C library is not laid out as expected.
pub fn check() {
    let misread = [
        ("pthread_mutex_t", mutex::is_laid_out_as_expected()),
        ("pthread_rwlock_t", rwlock::is_laid_out_as_expected()),
        ("pthread_once_t", once::is_laid_out_as_expected()),
    ];
    if let Some((object, _)) = misread.into_iter().find(|(_, is_as_expected)| !is_as_expected) {
        message::fatal(format_args!(
            "this C library keeps what a {object} is in places that raddle does not know; raddle needs glibc 2.34 or newer, \
             and a library that stands in for its locks (LD_PRELOAD) has to be left out"
        ));
    }
}
