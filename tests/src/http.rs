//! A small HTTP/1.1 client: one connection, kept alive.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// One connection to a server.
pub struct Connection {
    reader: BufReader<TcpStream>,
    address: SocketAddr,
}

/// What a server answered.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as JSON, `Null` if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Connection {
    /// Connects.
    ///
    /// # Panics
    ///
    /// If nothing listens there.
    #[must_use]
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a TCP option");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
        Self { reader: BufReader::new(stream), address }
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Panics
    ///
    /// If the server does not answer with HTTP.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.send(method, path, headers, body);
        let (status, headers) = self.read_head();
        let mut response = Response { status, headers, body: Vec::new() };
        if response.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            while let Some(chunk) = self.read_chunk() {
                response.body.extend_from_slice(&chunk);
            }
        } else {
            let length = response.header("content-length").and_then(|value| value.parse().ok());
            response.body = vec![0; length.unwrap_or(0)];
            self.reader.read_exact(&mut response.body).expect("a whole body");
        }
        response
    }

    /// POSTs JSON.
    pub fn post(&mut self, path: &str, body: &Value) -> Response {
        let headers = [("content-type", "application/json")];
        self.request("POST", path, &headers, body.to_string().as_bytes())
    }

    /// GETs.
    pub fn get(&mut self, path: &str) -> Response {
        self.request("GET", path, &[], b"")
    }

    /// Sends a request without reading the answer.
    ///
    /// # Panics
    ///
    /// If the connection is closed.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let stream = self.reader.get_mut();
        stream.write_all(head.as_bytes()).expect("the connection is open");
        // A server may refuse, and close, before it has read all of a body.
        let _ = stream.write_all(body);
    }

    /// Reads a status line and headers.
    ///
    /// # Panics
    ///
    /// If they are no HTTP.
    pub fn read_head(&mut self) -> (u16, Vec<(String, String)>) {
        let first = self.line();
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {first:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        (status, headers)
    }

    /// Reads one chunk of a chunked body; `None` after the last.
    ///
    /// # Panics
    ///
    /// If the body ends in the middle of a chunk.
    pub fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let line = self.line();
        let length = usize::from_str_radix(line.split(';').next().unwrap_or("0").trim(), 16);
        let length = length.unwrap_or_else(|_| panic!("no chunk length in {line:?}"));
        let mut chunk = vec![0; length];
        self.reader.read_exact(&mut chunk).expect("a whole chunk");
        self.line();
        (length > 0).then_some(chunk)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("the server answers");
        line.trim_end().to_owned()
    }
}
