//! An HTTP server for one request, written with the standard library: it sends a body in given pieces and tells whether the client read to
//! the end or hung up.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    thread::{self, JoinHandle},
    time::Duration,
};

/// How a connection ended, seen by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    /// The client took the whole body.
    Whole,
    /// The client closed the connection before the body was over.
    HungUp,
}

/// What comes after the pieces.
#[derive(Debug, Clone, Copy)]
enum Then {
    End,
    Repeat,
    Break,
}

pub(crate) struct Server {
    pub(crate) url: String,
    thread: JoinHandle<Served>,
}

impl Server {
    /// Serves `pieces`, each as an HTTP chunk of its own. With `endless`, the last piece is repeated until the client hangs up (or for ten
    /// seconds).
    pub(crate) fn start(pieces: Vec<Vec<u8>>, endless: bool) -> Self {
        Self::serve(pieces, if endless { Then::Repeat } else { Then::End })
    }

    /// Serves `pieces` and breaks the connection.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn cut_off(pieces: Vec<Vec<u8>>) -> Self {
        Self::serve(pieces, Then::Break)
    }

    fn serve(pieces: Vec<Vec<u8>>, then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let thread = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            if serve(stream, &pieces, then).is_ok() { Served::Whole } else { Served::HungUp }
        });
        Self { url, thread }
    }

    /// Waits for the connection to end.
    pub(crate) fn served(self) -> Served {
        self.thread.join().expect("the server does not panic")
    }
}

fn serve(mut stream: TcpStream, pieces: &[Vec<u8>], then: Then) -> io::Result<()> {
    stream.set_nodelay(true)?;
    read_request(&mut stream)?;
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
    )?;
    for piece in pieces {
        send(&mut stream, piece)?;
    }
    match then {
        Then::End => stream.write_all(b"0\r\n\r\n"),
        Then::Break => Ok(()),
        Then::Repeat => {
            for _ in 0..1_000 {
                thread::sleep(Duration::from_millis(10));
                send(&mut stream, pieces.last().map_or(b"\n", Vec::as_slice))?;
            }
            Ok(())
        }
    }
}

fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        request.extend_from_slice(&buffer[..read]);
        let Some(head) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&request[..head]).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        if read == 0 || request.len() >= head + 4 + length.unwrap_or(0) {
            return Ok(());
        }
    }
}

fn send(stream: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    write!(stream, "{:x}\r\n", piece.len())?;
    stream.write_all(piece)?;
    stream.write_all(b"\r\n")?;
    stream.flush()
}
