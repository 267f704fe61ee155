//! What the built `host-sim` prints where only a process of its own can show it. It must not need an Envoy.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A directory of one test, deleted with it.
struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> TestDir {
        let directory = format!("host-sim-line-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        TestDir(directory)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A child that ends with its test, whatever comes of it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn host_sim(arguments: &[&str], data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_host-sim"));
    command
        .args(arguments)
        .arg("--data-dir")
        .arg(data_dir)
        .env_remove("NO_COLOR")
        .env("HOST_SIM_LOG", "info")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The flags of `up` that name a port.
const PORTS: [&str; 7] = [
    "--listen",
    "--plane-listen",
    "--upstream-listen",
    "--admin-listen",
    "--grpc-listen",
    "--ledger-listen",
    "--grpc-admin-listen",
];

/// `host-sim up` with what must be a file, and on ports that nobody else is asked for here.
fn up(envoy: &str, data_dir: &Path) -> Output {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    // All are held until the last is known, so that no two are the same.
    let free = PORTS.map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let mut command = host_sim(&["up", "--envoy", envoy, "--wasm", file], data_dir);
    for (flag, taken) in PORTS.iter().zip(&free) {
        let address = taken.local_addr().expect("its address");
        command.args([flag, address.to_string().as_str()]);
    }
    drop(free);
    command.output().expect("host-sim starts")
}

/// The one line of stderr that is an error.
fn error(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("error"))
        .collect();
    assert_eq!(errors.len(), 1, "{told}");
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(errors[0].matches("hint:").count(), 1, "{told}");
    errors[0].to_owned()
}

#[test]
fn a_plane_tells_where_its_token_lies_and_logs_without_colour_into_a_pipe() {
    let dir = TestDir::new("plane");
    let mut command = host_sim(&["plane", "--listen", "127.0.0.1:0"], &dir.0);
    let mut plane = Running(command.spawn().expect("host-sim starts"));
    let stderr = plane.0.stderr.take().expect("a pipe");
    let told: Vec<String> = BufReader::new(stderr)
        .lines()
        .map(|line| line.expect("text"))
        .take_while(|line| !line.starts_with("Ctrl-C"))
        .collect();
    plane.0.kill().expect("a running plane");
    let mut printed = String::new();
    let mut stdout = plane.0.stdout.take().expect("a pipe");
    stdout.read_to_string(&mut printed).expect("text");

    assert!(
        told.iter().any(|line| line.contains("made a token")),
        "{told:?}"
    );
    assert!(!told.concat().contains('\u{1b}'), "{told:?}");
    let file = dir.0.join("sidecar-token");
    let example = format!(
        "HOOP_SIDECAR_TOKEN=\"$(cat {})\" envoy -c envoy/envoy.yaml",
        file.display()
    );
    assert!(printed.contains(&example), "{printed}");
    let token = std::fs::read_to_string(file).expect("a token");
    assert!(!printed.contains(token.trim()) && !told.concat().contains(token.trim()));
}

#[test]
fn a_second_up_on_one_data_directory_is_refused_and_writes_nothing() {
    let dir = TestDir::new("in-use");
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(dir.0.join("up.lock"))
        .expect("a file");
    lock.lock().expect("the lock of the first up");

    let told = error(&up("true", &dir.0));

    assert!(
        told.contains("is in use by another `host-sim up`"),
        "{told}"
    );
    for flag in PORTS.into_iter().chain(["--data-dir"]) {
        assert!(told.contains(&format!("`{flag}`")), "{told}");
    }
    let left: Vec<_> = std::fs::read_dir(&dir.0)
        .expect("a directory")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_file_that_is_no_envoy_is_told_in_one_line() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let broken = TestDir::new("broken");
    // An interpreter that is not there: what an Envoy for another C library looks like to the system.
    let script = broken.0.join("envoy");
    std::fs::write(&script, "#!/nowhere/interpreter\n").expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&script, mode).expect("a program");
    let script = script.to_str().expect("a plain path");
    for (envoy, expected) in [
        (file, format!("error: {file} is no program: ")),
        (
            script,
            format!("error: {script}: cannot start Envoy: No such file or directory"),
        ),
        (
            "/usr/bin/true",
            "error: /usr/bin/true does not behave like Envoy: ".to_owned(),
        ),
    ] {
        let dir = TestDir::new("no-envoy");
        let told = error(&up(envoy, &dir.0));
        assert!(told.starts_with(&expected), "{told}");
        assert!(told.contains("`--envoy"), "{told}");
    }
}

/// The client of the demo service asks nobody but the address that it is given.
#[test]
fn what_a_ledger_call_cannot_send_is_told_in_one_line() {
    let dir = TestDir::new("ledger");
    let postings = dir.0.join("postings.csv");
    std::fs::write(&postings, "demo/rent,-850.00\ndemo/rent\n").expect("a file");
    let postings = postings.to_str().expect("a plain path");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = closed.local_addr().expect("its address").to_string();
    drop(closed);
    for (arguments, expected) in [
        (
            vec!["post", "--account", "a", "--amount", "1,50"],
            "error: --amount: \"1,50\" is no amount in EUR; hint: write it as 120".to_owned(),
        ),
        (
            vec!["import", postings],
            format!("error: {postings}:2: found \"demo/rent\", need account,amount or "),
        ),
        (
            vec!["import", "/nowhere/a.csv"],
            "error: /nowhere/a.csv: cannot read the postings: No such file".to_owned(),
        ),
        (
            vec!["reconcile", "p-1"],
            "error: \"p-1\" is no line of a statement, need ID,ACCOUNT,AMOUNT".to_owned(),
        ),
        (
            vec!["balance", "a", "--metadata", "te=x"],
            "error: \"te\" with this value is no metadata of a caller's: ".to_owned(),
        ),
        (
            vec!["balance", "a", "--address", "https://h:1"],
            "error: \"https://h:1\" is no address of a gRPC server without TLS: ".to_owned(),
        ),
        (
            vec!["balance", "a", "--address", &address],
            format!("error: cannot connect to {address}: "),
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_host-sim"))
            .arg("ledger")
            .args(["--address", &address])
            .args(&arguments)
            .stdin(Stdio::null())
            .output()
            .expect("host-sim starts");
        let told = error(&output);
        assert!(told.starts_with(&expected), "{told}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}
