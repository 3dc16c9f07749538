//! Servers on loopback that say exactly what a test wants.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

/// A port of the local host where nobody listens: a free one may be somebody else's the next moment.
pub const CLOSED: u16 = 1;

/// A byte stream of a client.
pub trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A stream over TLS that tells whether it goes on with an earlier session.
struct Secure {
    stream: StreamOwned<ServerConnection, TcpStream>,
    resumed: Option<Arc<AtomicUsize>>,
}

impl Read for Secure {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let len = self.stream.read(bytes)?;
        if self.stream.conn.handshake_kind() == Some(HandshakeKind::Resumed)
            && let Some(count) = self.resumed.take()
        {
            count.fetch_add(1, Ordering::SeqCst);
        }
        Ok(len)
    }
}

impl Write for Secure {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

/// A connection that a client made.
pub struct Client(BufReader<Box<dyn Stream>>);

/// A request.
pub struct Request {
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Client {
    /// The next request, with its body; `None` when the client left.
    pub fn request(&mut self) -> Option<Request> {
        let mut line = String::new();
        if self.0.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            self.0.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let len = headers.get("content-length").map_or(0, |n| n.parse().unwrap());
        let mut body = vec![0; len];
        self.0.read_exact(&mut body).ok()?;
        Some(Request { line: line.trim_end().to_owned(), headers, body })
    }

    /// Reads the head of a request, and leaves its body where it is.
    pub fn head(&mut self) {
        let mut line = String::new();
        while self.0.read_line(&mut line).is_ok_and(|len| len > 2) {
            line.clear();
        }
    }

    /// Says that nothing more comes, and waits until the client closes: who does not read to the end breaks the
    /// connection.
    pub fn leave(&mut self) {
        PLAIN.with_borrow(|plain| {
            if let Some(plain) = plain {
                let _ = plain.shutdown(std::net::Shutdown::Write);
            }
        });
        self.drain();
    }

    /// Reads whatever comes until the client closes.
    pub fn drain(&mut self) {
        let _ = std::io::copy(&mut self.0, &mut std::io::sink());
    }

    /// Sends bytes; a client that left does not matter.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.sends(bytes);
    }

    /// The same; tells whether the client is still there.
    pub fn sends(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let to = self.0.get_mut();
        to.write_all(bytes.as_ref()).and_then(|()| to.flush()).is_ok()
    }

    /// An answer with a length.
    pub fn answer(&mut self, status: &str, body: &str) {
        self.send(format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\nx-test: yes\r\n\r\n{body}",
            body.len()
        ));
    }

    /// Goes on over TLS inside what there is.
    pub fn secure(self, certificate: &str) -> Self {
        let connection = ServerConnection::new(config(certificate)).unwrap();
        Self(BufReader::new(Box::new(StreamOwned::new(connection, self.0.into_inner()))))
    }

    /// Copies both ways between the client and a server at `address`, until one of them leaves.
    pub fn tunnel(self, address: &str) {
        let server = TcpStream::connect(address).unwrap();
        let raw: Box<dyn Stream> = self.0.into_inner();
        // Only plain sockets are tunnelled here; see `listen`.
        let Some(client) = PLAIN.with_borrow_mut(Option::take) else { panic!("a plain socket") };
        drop(raw);
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let up = thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
        let (mut from, mut to) = (server, client);
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
        let _ = up.join();
    }
}

thread_local! {
    static PLAIN: std::cell::RefCell<Option<TcpStream>> = const { std::cell::RefCell::new(None) };
}

/// What a server with one of the certificates in `certs` says of itself.
fn config(certificate: &str) -> Arc<ServerConfig> {
    let certs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("contract/certs");
    let chain = CertificateDer::from_pem_file(certs.join(format!("{certificate}.pem"))).unwrap();
    let key = PrivateKeyDer::from_pem_file(certs.join(format!("{certificate}.key"))).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    Arc::new(config)
}

/// A server; lives until the process ends.
pub struct Server {
    pub port: u16,
    connections: Arc<AtomicUsize>,
    resumed: Arc<AtomicUsize>,
}

impl Server {
    /// `serve` gets each connection and its number.
    pub fn new(serve: impl Fn(Client, usize) + Send + Sync + 'static) -> Self {
        Self::listen(None, serve)
    }

    /// The same over TLS; `certificate` names files in `certs`.
    pub fn tls(certificate: &str, serve: impl Fn(Client, usize) + Send + Sync + 'static) -> Self {
        Self::listen(Some(config(certificate)), serve)
    }

    fn listen(tls: Option<Arc<ServerConfig>>, serve: impl Fn(Client, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let resumed = Arc::new(AtomicUsize::new(0));
        let of_resumed = Arc::clone(&resumed);
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                socket.set_nodelay(true).unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (serve, tls) = (Arc::clone(&serve), tls.clone());
                let resumed = Some(Arc::clone(&of_resumed));
                thread::spawn(move || {
                    PLAIN.set(socket.try_clone().ok());
                    let stream: Box<dyn Stream> = match tls {
                        None => Box::new(socket),
                        Some(config) => {
                            let stream = StreamOwned::new(ServerConnection::new(config).unwrap(), socket);
                            Box::new(Secure { stream, resumed })
                        }
                    };
                    serve(Client(BufReader::new(stream)), number);
                    PLAIN.set(None);
                });
            }
        });
        Self { port, connections, resumed }
    }

    /// `http://127.0.0.1:port` and a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// How many of them went on with an earlier session of TLS.
    pub fn resumed(&self) -> usize {
        self.resumed.load(Ordering::SeqCst)
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}
