//! The language-neutral adapter: one JSON line in, one JSON line out.

use std::io::{self, Write};

/// Refuses every operation.
pub(crate) fn run() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        r#"{{"ok":false,"error":{{"code":"UNSUPPORTED_OPERATION"}}}}"#
    )
}
