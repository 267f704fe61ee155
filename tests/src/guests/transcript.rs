//! Runs a scenario on a host and writes down what client, upstream and guest saw, the same text in each run.
//!
//! `>` what the client sent, `<` what it got, `^` what the upstream got, then the guest's lines by VM. Values that differ from run to run
//! (dates, ids, durations) are hidden here; guests do not log them.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::grpc_upstream::GrpcUpstream;
use super::host::{Host, Running};
use super::moments::Moments;
use super::scenario::{Exchange, Places, Scenario};
use super::upstream::{Upstream, whole_message};
use crate::unread::wait_until_read;
use crate::wait;

/// The transcript of one run.
pub fn run(host: &Host, scenario: &Scenario, guests: &Path) -> String {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("guests.{}.{run}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the run");
    let moments = Moments::new(&folder.join("log"));
    let upstream = Upstream::start(&moments);
    let module = guests.join(format!("{}.wasm", scenario.guest));
    let places = Places {
        module: &module,
        upstream: upstream.port,
        grpc_upstream: GrpcUpstream::start().port,
        dead: dead_port(),
    };
    let running = host.start(&folder, &scenario.bootstrap(&places));
    let mut text = String::new();
    match running.listener {
        Some(listener) => {
            if let Some(line) = &scenario.ready {
                moments.wait_for_line(&line.text, line.times);
            }
            for exchange in &scenario.exchanges {
                moments.start_over();
                let answer = exchange_with(&running, listener, exchange, &moments);
                write_exchange(&mut text, exchange, &answer, &upstream);
            }
            if let Some(line) = &scenario.end {
                moments.wait_for_line(&line.text, line.times);
            }
        }
        None => text.push_str("the host refused\n"),
    }
    let log = running.stop();
    write_guest_lines(&mut text, &log, scenario.pieces_vary);
    let _removed = std::fs::remove_dir_all(&folder);
    text
}

fn dead_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound socket").port()
}

/// Sends the pieces and reads until the answer is whole or the connection ends, and then until the host has nothing left to do.
fn exchange_with(
    host: &Running,
    listener: SocketAddr,
    exchange: &Exchange,
    moments: &Moments,
) -> Vec<u8> {
    let mut stream = TcpStream::connect(listener).expect("a listening host");
    let _small_pieces_go_out_at_once = stream.set_nodelay(true);
    let local = stream.local_addr().expect("a connected socket");
    for piece in &exchange.pieces {
        if stream.write_all(piece).is_err() {
            break;
        }
        wait_until_read(local, listener);
    }
    moments.note("sent");
    if let Some(line) = &exchange.hang_up_after {
        moments.wait_for(&format!("log:{line}"));
        drop(stream);
        host.wait_until_let_go();
        moments.note("gone");
        host.wait_until_idle();
        return b"(client hung up)".to_vec();
    }
    let head_only = exchange.pieces[0].starts_with(b"HEAD ");
    let is_whole = |answer: &[u8]| match head_only {
        true => answer.ends_with(b"\r\n\r\n"),
        false => whole_message(answer).is_some(),
    };
    let mut answer = Vec::new();
    let mut end = "";
    let _set = stream.set_read_timeout(Some(wait::PATIENCE));
    while end.is_empty() && !is_whole(&answer) {
        end = read_part(&mut stream, &mut answer);
    }
    host.wait_until_idle();
    // What a host sends behind a whole answer must show as well.
    let _set = stream.set_nonblocking(true);
    while end.is_empty() {
        end = read_part(&mut stream, &mut answer);
    }
    if !is_whole(&answer) {
        answer.extend(end.as_bytes());
    }
    answer
}

/// Appends what came; else how the connection stands.
fn read_part(stream: &mut TcpStream, answer: &mut Vec<u8>) -> &'static str {
    let mut part = [0; 65536];
    match stream.read(&mut part) {
        Ok(0) => "(connection ended)",
        Ok(count) => {
            answer.extend(&part[..count]);
            ""
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            "(no end)"
        }
        Err(_) => "(connection reset)",
    }
}

fn write_exchange(text: &mut String, exchange: &Exchange, answer: &[u8], upstream: &Upstream) {
    for piece in &exchange.pieces {
        write_bytes(text, '>', piece);
    }
    write_bytes(text, '<', answer);
    let mut all = upstream.take_seen();
    all.sort(); // Requests of one moment come on several connections, in any order.
    for seen in all {
        write_bytes(text, '^', &seen);
    }
    text.push('\n');
}

/// Lines of a message, each behind `mark`; a body is one line with escapes.
fn write_bytes(text: &mut String, mark: char, bytes: &[u8]) {
    let shown = &bytes[..bytes.len().min(4096)];
    for line in shown.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n").unwrap_or(line);
        let line = line
            .escape_ascii()
            .to_string()
            .replace("\\\"", "\"")
            .replace("\\'", "'");
        text.push_str(&format!("{mark} {}\n", hide(&line)));
    }
}

/// Hides the value of headers that no two runs share.
fn hide(line: &str) -> String {
    match line.split_once(": ") {
        Some((name @ ("date" | "x-request-id" | "x-envoy-upstream-service-time"), _)) => {
            format!("{name}: *")
        }
        _ => line.to_owned(),
    }
}

/// The guest's lines, VM by VM: threads of one host write in any order, but each VM keeps its own.
///
/// Guests that do not number their VM keep the order of their streams, which live in one VM here. What their roots say in
/// several VMs at a time is sorted.
fn write_guest_lines(text: &mut String, log: &str, pieces_vary: bool) {
    let mut by_vm: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    let (mut roots, mut streams, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for line in log.lines() {
        let said = line.split_once("wasm log ");
        if let Some((context, said)) = said.and_then(|(_, rest)| rest.split_once(": |")) {
            let said = said.trim_start();
            let vm = said.split_once('.').and_then(|(vm, _)| vm.parse().ok());
            match vm {
                Some(vm) => by_vm.entry(vm).or_default().push(said),
                None if context.starts_with("guest ") => streams.push(said),
                None => roots.push(said),
            }
        } else if let Some(at) = failure(line) {
            failures.push(&line[at..]);
        }
    }
    roots.sort();
    let numbered = by_vm.into_values().flatten();
    let lines = roots.into_iter().chain(streams).chain(numbered);
    let lines = lines.chain(failures).map(|line| {
        if pieces_vary {
            without_size(line)
        } else {
            line.to_owned()
        }
    });
    let mut lines: Vec<String> = lines.collect();
    if pieces_vary {
        lines.dedup();
    }
    for line in lines {
        text.push_str(&format!("| {line}\n"));
    }
}

/// `1.2 response_body(size=52 end=0)` as `1.2 response_body(size=* end=0)`.
fn without_size(line: &str) -> String {
    let call = line.split_once("response_body(size=");
    let parts = call.and_then(|(head, rest)| Some((head, rest.split_once(' ')?.1)));
    match parts {
        Some((head, end)) => format!("{head}response_body(size=* {end}"),
        None => line.to_owned(),
    }
}

/// Where a host's own line tells of a guest's failure.
fn failure(line: &str) -> Option<usize> {
    let trap = line
        .find("Function: ")
        .filter(|_| line.contains(" failed: Uncaught "));
    trap.or_else(|| line.find("Wasm VM failed"))
}
