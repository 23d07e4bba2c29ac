//! Writing to standard output where it may be full or gone.
//!
//! The standard library's `println!` panics when a write fails, and on a full disk every sentence does. The two macros here stand in its
//! place in the whole crate: what cannot be written ends the command with a sentence and the status for trouble. A reader that went
//! away (`raddle ... | head`) ends it quietly through `SIGPIPE`.

use crate::commands::Exit;
use std::fmt::Arguments;
use std::io::{BufWriter, StdoutLock, Write};

/// Writes to standard output, or ends this process.
pub fn write(text: Arguments<'_>) {
    if let Err(error) = std::io::stdout().lock().write_fmt(text) {
        refuse(&error);
    }
}

/// Writes out what is still buffered, or ends this process.
pub fn flush() {
    if let Err(error) = std::io::stdout().lock().flush() {
        refuse(&error);
    }
}

/// Standard output for those who write much of it.
pub fn buffered() -> impl Write {
    Much(BufWriter::new(std::io::stdout().lock()))
}

struct Much(BufWriter<StdoutLock<'static>>);

impl Write for Much {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.0.write(bytes).unwrap_or_else(|error| refuse(&error)))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush().unwrap_or_else(|error| refuse(&error));
        Ok(())
    }
}

fn refuse(error: &std::io::Error) -> ! {
    // Standard error may be on the same full disk; there is nobody left to tell then.
    let _ = writeln!(std::io::stderr(), "raddle: error: cannot write to standard output: {error}");
    std::process::exit(Exit::TROUBLE_STATUS);
}

macro_rules! print {
    ($($text:tt)*) => { $crate::standard_output::write(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::standard_output::write(format_args!("\n")) };
    ($($text:tt)*) => {
        $crate::standard_output::write(format_args!("{}\n", format_args!($($text)*)))
    };
}
