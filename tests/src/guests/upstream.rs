//! The service behind the host: answers as the request's `x-up` header says and remembers what it saw.
//!
//! Words of `x-up`: `status=404`, `body=text`, `times=100`, `chunked`, `trailer`, `pieces=3`, `after=moment`, `hang`, `reset`, `cut`,
//! `h:name=value`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::moments::Moments;
use crate::unread::wait_until_read;

/// A listening upstream.
pub struct Upstream {
    /// Its port.
    pub port: u16,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Upstream {
    /// Listens on a free port; answers wait for `moments` and tell of theirs.
    pub fn start(moments: &Moments) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, moments) = (Arc::clone(&seen), moments.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, moments) = (Arc::clone(&all), moments.clone());
                std::thread::spawn(move || serve(stream, &seen, &moments));
            }
        });
        Upstream { port, seen }
    }

    /// Takes what was seen since the last call: one entry a request, head and body as they came.
    pub fn take_seen(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.seen.lock().expect("no holder panicked"))
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Vec<u8>>>, moments: &Moments) {
    let _small_pieces_go_out_at_once = stream.set_nodelay(true);
    let mut waiting = Vec::new();
    while let Some(request) = read_message(&mut stream, &mut waiting, seen) {
        let text = String::from_utf8_lossy(&request).into_owned();
        if answer(&mut stream, &text, moments).is_none() {
            return;
        }
        until_read(&stream);
        moments.note(text.split(' ').nth(1).unwrap_or_default());
    }
}

/// One request; also files it, in the order in which heads came.
fn read_message(
    stream: &mut TcpStream,
    waiting: &mut Vec<u8>,
    seen: &Mutex<Vec<Vec<u8>>>,
) -> Option<Vec<u8>> {
    let mut at = None;
    loop {
        let file = at.is_none() && waiting.windows(4).any(|four| four == b"\r\n\r\n");
        let whole = whole_message(waiting);
        let known = waiting[..whole.unwrap_or(waiting.len())].to_vec();
        let mut all = seen.lock().expect("no holder panicked");
        if file {
            all.push(Vec::new());
            at = Some(all.len() - 1);
        }
        if let Some(slot) = at.and_then(|at| all.get_mut(at)) {
            slot.clone_from(&known);
        }
        drop(all);
        if let Some(whole) = whole {
            waiting.drain(..whole);
            return Some(known);
        }
        let mut part = [0; 65536];
        let count = stream.read(&mut part).ok().filter(|count| *count > 0)?;
        waiting.extend(&part[..count]);
    }
}

/// Size of the message at the start of `bytes`, if it is whole.
pub fn whole_message(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    if text.contains("transfer-encoding: chunked") {
        let body = &bytes[head..];
        let mut at = 0;
        loop {
            let line = body[at..].windows(2).position(|two| two == b"\r\n")?;
            let size =
                usize::from_str_radix(str::from_utf8(&body[at..at + line]).ok()?, 16).ok()?;
            at += line + 2;
            if size == 0 {
                let end = if body[at..].starts_with(b"\r\n") {
                    2
                } else {
                    body[at..].windows(4).position(|four| four == b"\r\n\r\n")? + 4
                };
                return body.get(..at + end).map(|_| head + at + end);
            }
            at += size + 2;
            body.get(at..)?;
        }
    }
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let end = head + length.unwrap_or(0);
    (bytes.len() >= end).then_some(end)
}

/// Answers; `None` when the connection is over.
fn answer(stream: &mut TcpStream, request: &str, moments: &Moments) -> Option<()> {
    let told = request
        .lines()
        .find_map(|line| line.strip_prefix("x-up: "))
        .unwrap_or_default();
    let value = |name: &str| {
        told.split(' ')
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let has = |name: &str| told.split(' ').any(|word| word == name);
    if has("hang") {
        let _host_gave_up = stream.read(&mut [0]);
        return None;
    }
    if has("reset") {
        return None;
    }
    for moment in told
        .split(' ')
        .filter_map(|word| word.strip_prefix("after="))
    {
        moments.wait_for(moment);
    }
    let number = |name: &str| value(name).and_then(|value| value.parse::<usize>().ok());
    let body = value("body")
        .unwrap_or("up")
        .repeat(number("times").unwrap_or(1));
    let mut head = format!(
        "HTTP/1.1 {} OK\r\nx-up: 1\r\ncontent-type: text/plain\r\n",
        value("status").unwrap_or("200")
    );
    for word in told.split(' ').filter_map(|word| word.strip_prefix("h:")) {
        head.push_str(&format!("{}\r\n", word.replacen('=', ": ", 1)));
    }
    if !has("chunked") && !has("trailer") {
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let body = if request.starts_with("HEAD ") {
            ""
        } else {
            &body
        };
        return stream.write_all((head + body).as_bytes()).ok();
    }
    head.push_str("transfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let step = body.len().div_ceil(number("pieces").unwrap_or(1)).max(1);
    for (index, piece) in body.as_bytes().chunks(step).enumerate() {
        if index > 0 {
            until_read(stream);
        }
        stream
            .write_all(
                format!(
                    "{:x}\r\n{}\r\n",
                    piece.len(),
                    String::from_utf8_lossy(piece)
                )
                .as_bytes(),
            )
            .ok()?;
    }
    if has("cut") {
        return None;
    }
    let trailer = if has("trailer") {
        "x-trailer: t\r\n"
    } else {
        ""
    };
    stream
        .write_all(format!("0\r\n{trailer}\r\n").as_bytes())
        .ok()
}

fn until_read(stream: &TcpStream) {
    if let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) {
        wait_until_read(local, peer);
    }
}
