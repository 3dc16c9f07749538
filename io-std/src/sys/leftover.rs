//! What is left in a connection: bytes that nobody asked for, and those that a peer sent before it left.

use std::io::{self, ErrorKind, Read};

use rustls::ClientConnection;

/// Whether an error of writing says that the peer takes no more. What it said before may still be there.
#[must_use]
pub fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)
}

/// Whether nothing waits inside a layer of encryption, not even its end.
#[must_use]
pub fn is_quiet(connection: &ClientConnection) -> bool {
    connection.wants_read()
}

/// Reads from an encrypted connection whose peer takes no more; an ordinary read would first write what is due.
///
/// # Errors
/// Those of the stream below; `InvalidData` for what makes no sense.
pub fn read_only(
    connection: &mut ClientConnection,
    below: &mut dyn Read,
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        match connection.reader().read(buffer) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            other => return other,
        }
        connection.read_tls(&mut *below)?;
        connection.process_new_packets().map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
    }
}
