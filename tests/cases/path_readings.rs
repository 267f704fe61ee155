//! Paths by the hundred, put together from the pieces that confuse gates: whatever reaches the upstream has no reading that a rule
//! holds or that the gate keeps for itself. A reading is what some server makes of the path, in any order of its steps.

use std::collections::BTreeSet;

use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::lying_plane::Reply;
use hoop_tests::on_both_hosts;
use hoop_tests::scene::Scene;

on_both_hosts! {
    what_passes_has_no_reading_that_needs_an_approval,
}

const ID: &str = "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1";

/// Pieces of a path; each path is a slash and up to six of them.
const PIECES: [&str; 34] = [
    "payments",
    "PAYMENTS",
    "%70ayments",
    "pay%6Dents",
    "%2570ayments",
    "42",
    "x",
    ".well-known",
    "%2ewell-known",
    "hoop",
    "h%6fop",
    "/",
    "/",
    "/",
    "//",
    "\\",
    "%2f",
    "%2F",
    "%5c",
    "%252f",
    "%255c",
    ".",
    "..",
    "%2e",
    "%2e%2e",
    ".%2E",
    "%252e",
    ";",
    ";a=b",
    "%3b",
    "/../",
    "/./",
    "/x/..",
    "%",
];

/// How many paths are tried.
const PATHS: usize = 1500;

/// The steps that servers take on a path.
const STEPS: [fn(&str) -> String; 6] = [
    decoded,
    |path| path.replace('\\', "/"),
    merged,
    without_params,
    resolved,
    |path| path.to_ascii_lowercase(),
];

async fn what_passes_has_no_reading_that_needs_an_approval(host: Host) {
    let scene = Scene::lying(host).start().await;
    scene
        .lies()
        .always(Reply::review(201, false, ID, "PENDING"));
    let mut dice = Dice(0x5eed);
    let mut connection = scene.connect().await;
    let mut passed = 0;
    let mut refused = 0;
    let mut wrong = BTreeSet::new();
    for _ in 0..PATHS {
        let path = dice.path();
        let answer = connection.send(&request("POST", &path, &[], None)).await;
        match answer.status {
            200 => {
                passed += 1;
                assert_eq!(scene.upstream.last().start_word(1), path);
                if let Some(reading) = forbidden_reading(&path) {
                    wrong.insert(format!("{path} can be read as {reading}"));
                }
            }
            400 | 403 | 404 | 405 => refused += 1,
            other => panic!("{other} for {path}: {answer}"),
        }
        if answer.header("connection").is_some() {
            connection = scene.connect().await;
        }
    }
    assert!(wrong.is_empty(), "{} paths: {wrong:#?}", wrong.len());
    // Else the paths prove nothing.
    assert!(
        passed > PATHS / 20 && refused > PATHS / 20,
        "{passed} passed, {refused} refused"
    );
    scene.finish(passed).await;
}

/// A reading of `path` that lies under the rule or under the reserved prefix, if any sequence of steps gives one.
fn forbidden_reading(path: &str) -> Option<String> {
    let mut seen = BTreeSet::from([path.to_owned()]);
    let mut fresh = vec![path.to_owned()];
    while let Some(reading) = fresh.pop() {
        let held = reading == "/payments" || reading.starts_with("/payments/");
        if held || reading.starts_with("/.well-known/hoop/") {
            return Some(reading);
        }
        for step in STEPS {
            let next = step(&reading);
            if seen.insert(next.clone()) {
                fresh.push(next);
            }
        }
    }
    None
}

fn decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = Vec::new();
    let mut index = 0;
    while index < bytes.len() {
        let digits = path.get(index + 1..index + 3);
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if bytes[index] == b'%' => {
                out.push(code);
                index += 3;
            }
            _ => {
                out.push(bytes[index]);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn merged(path: &str) -> String {
    let mut out = path.to_owned();
    while out.contains("//") {
        out = out.replace("//", "/");
    }
    out
}

fn without_params(path: &str) -> String {
    let plain = |segment: &str| segment.split(';').next().unwrap_or_default().to_owned();
    path.split('/').map(plain).collect::<Vec<_>>().join("/")
}

/// Dot segments resolved as in RFC 3986, 5.2.4.
fn resolved(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}

/// A generator of numbers, the same in every run (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap_or(0) % bound
    }

    fn path(&mut self) -> String {
        let count = 1 + self.below(6);
        let pieces = (0..count).map(|_| PIECES[self.below(PIECES.len())]);
        let path: String = pieces.collect();
        format!("/{path}")
    }
}
