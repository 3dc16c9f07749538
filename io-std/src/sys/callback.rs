//! Waits on this machine for a browser that comes back from a sign-in (spec 40 §2.2).

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// A browser sends its few lines at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often is looked for a browser.
const LOOK: Duration = Duration::from_millis(50);
/// Longest request line and headers.
const MOST_BYTES: usize = 16 << 10;

/// A listening socket.
#[derive(Debug)]
pub struct Callback {
    listener: TcpListener,
    path: String,
}

/// A browser that waits for its page.
#[derive(Debug)]
pub struct Visitor {
    stream: TcpStream,
    /// The query it brought, still encoded.
    pub query: String,
}

impl Callback {
    /// Listens on the loopback address; 0 = any port.
    ///
    /// # Errors
    /// `AddrInUse` when the port is taken.
    pub fn listen(host: Option<&str>, port: u16, path: &str) -> io::Result<Self> {
        let listener = match host {
            Some(host) => TcpListener::bind((host, port))?,
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, port))?,
        };
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// The port that is listened at.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn port(&self) -> io::Result<u16> {
        self.listener.local_addr().map(|address| address.port())
    }

    /// Waits until someone asks for the path, at most until `deadline` or until `given_up` says so. Others are sent
    /// away.
    pub fn wait(&self, deadline: Instant, given_up: &dyn Fn() -> bool) -> Option<Visitor> {
        while Instant::now() < deadline && !given_up() {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if let Ok(Some(visitor)) = self.receive(stream) {
                        return Some(visitor);
                    }
                }
                Err(_) => thread::sleep(LOOK),
            }
        }
        None
    }

    fn receive(&self, mut stream: TcpStream) -> io::Result<Option<Visitor>> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let line = request_line(&mut stream)?;
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let visitor = Visitor { stream, query: query.to_owned() };
        if method != "GET" || path != self.path {
            visitor.answer(404);
            return Ok(None);
        }
        Ok(Some(visitor))
    }
}

/// The first line of a request; the rest is read and forgotten.
fn request_line(stream: &mut TcpStream) -> io::Result<String> {
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MOST_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        match stream.read(&mut buffer)? {
            0 => break,
            len => head.extend_from_slice(buffer.get(..len).unwrap_or_default()),
        }
    }
    let text = String::from_utf8_lossy(&head);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

impl Visitor {
    /// Shows a page with this status. A browser that went away is no failure.
    pub fn answer(mut self, status: u16) {
        let (reason, text) = match status {
            200 => ("OK", "You are signed in. This page can be closed."),
            404 => ("Not Found", "Nothing is here."),
            409 => ("Conflict", "This sign-in has been answered already."),
            502 => ("Bad Gateway", "Signing in failed; the terminal tells more."),
            _ => ("Bad Request", "This does not complete a sign-in; the terminal tells more."),
        };
        let page = format!("<!doctype html><meta charset=utf-8><title>tau</title><p>{text}</p>\n");
        let _ = write!(
            self.stream,
            "HTTP/1.1 {status} {reason}\r\ncontent-type: text/html; charset=utf-8\r\ncache-control: no-store\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{page}",
            page.len()
        );
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use super::*;

    fn ask(port: u16, head: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn only_the_path_counts() {
        let callback = Callback::listen(None, 0, "/callback").unwrap();
        let port = callback.port().unwrap();
        assert!(Callback::listen(None, port, "/callback").is_err());
        let browser = thread::spawn(move || {
            let wrong = [
                "GET / HTTP/1.1\r\n\r\n",
                "POST /callback?code=1 HTTP/1.1\r\n\r\n",
                "GET /callback/x HTTP/1.1\r\n\r\n",
            ];
            let mut answers: Vec<String> = wrong.into_iter().map(|head| ask(port, head)).collect();
            answers.push(ask(port, "GET /callback?code=a%20b&state=s HTTP/1.1\r\nhost: x\r\n\r\n"));
            answers
        });
        let visitor = callback.wait(Instant::now() + PATIENCE, &|| false).unwrap();
        assert_eq!(visitor.query, "code=a%20b&state=s");
        visitor.answer(200);
        let answers = browser.join().unwrap();
        let codes: Vec<&str> = answers.iter().map(|answer| answer.get(9..12).unwrap()).collect();
        assert_eq!(codes, ["404", "404", "404", "200"]);
        assert!(answers.iter().all(|answer| answer.contains("cache-control: no-store")));
        assert!(callback.wait(Instant::now(), &|| false).is_none());
        assert!(callback.wait(Instant::now() + PATIENCE, &|| true).is_none());
    }
}
