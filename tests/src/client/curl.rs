//! curl as a client: its `--path-as-is` sends spellings that libraries tidy away, and it speaks HTTP/2 without TLS.

use std::process::Stdio;

use tokio::process::Command;

use super::Answer;
use crate::wait;

/// Runs curl with `arguments` and gives the last answer it read; `None` when no answer came.
pub async fn run(arguments: &[&str]) -> Option<Answer> {
    let mut command = Command::new("curl");
    command
        .args([
            "--silent",
            "--include",
            "--max-time",
            "20",
            "--noproxy",
            "*",
        ])
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = wait::within("curl", command.output())
        .await
        .expect("curl is installed");
    let mut answer = parse(&output.stdout)?;
    while (100..200).contains(&answer.status) {
        answer = parse(&answer.body)?;
    }
    Some(answer)
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().as_bytes().to_vec()))
    };
    Some(Answer {
        status,
        headers: lines.filter_map(field).collect(),
        body: bytes[end + 4..].to_vec(),
        trailers: Vec::new(),
    })
}
