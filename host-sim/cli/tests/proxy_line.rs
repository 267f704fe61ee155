//! `host-sim proxy` as a process: how it starts, ends and refuses. What it does with requests is tested end to end elsewhere.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory of one test with a module in it, deleted with it.
struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> TestDir {
        let directory = format!("host-sim-proxy-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        TestDir(directory)
    }

    /// A module of which `proxy_on_configure` answers `accepts`, after a line of level error when it refuses.
    fn module(&self, accepts: bool) -> String {
        let configure = if accepts {
            "i32.const 1"
        } else {
            "(drop (call $log (i32.const 4) (i32.const 16) (i32.const 9))) i32.const 0"
        };
        self.file(
            "filter.wat",
            &format!(
                r#"(module
                (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
                (memory (export "memory") 1)
                (data (i32.const 16) "no colour")
                (func (export "malloc") (param i32) (result i32) i32.const 1024)
                (func (export "proxy_abi_version_0_2_1"))
                (func (export "proxy_on_configure") (param i32 i32) (result i32) {configure}))"#
            ),
        )
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A child that ends with its test, whatever comes of it.
struct Running(Child);

impl Running {
    /// How it ended by itself.
    fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < deadline, "it runs on");
            std::thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn proxy(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_host-sim"));
    command
        .arg("proxy")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The flags of one filter in front of a port on which nobody listens.
fn one_filter(module: &str) -> Vec<&str> {
    let mut flags = vec!["--wasm", module, "--listen", "127.0.0.1:0"];
    flags.extend(["--upstream", "127.0.0.1:9", "--workers", "1"]);
    flags
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last line of stderr, of a process that ended with the exit code of a user's mistake.
fn refusal(output: &Output) -> String {
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let errors: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(errors.len(), 1, "{told}");
    assert_eq!(errors[0].matches("hint:").count(), 1, "{told}");
    errors[0].to_owned()
}

/// Starts it and waits until the file for the admin address has one.
fn start(dir: &TestDir) -> (Running, SocketAddr) {
    let module = dir.module(true);
    let address_file = dir.file("admin.txt", "");
    let mut flags = one_filter(&module);
    flags.extend([
        "--admin-listen",
        "127.0.0.1:0",
        "--admin-address-path",
        &address_file,
    ]);
    let running = Running(proxy(&flags).spawn().expect("host-sim starts"));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = std::fs::read_to_string(Path::new(&address_file)).expect("the file");
        if let Ok(address) = found.trim().parse() {
            return (running, address);
        }
        assert!(Instant::now() < deadline, "it is not ready");
        std::thread::yield_now();
    }
}

fn ask(address: SocketAddr, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the admin interface");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: admin\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    text(&answer)
}

#[test]
fn it_serves_until_the_admin_interface_ends_it() {
    let dir = TestDir::new("quit");
    let (mut running, admin) = start(&dir);
    assert!(ask(admin, "GET", "/ready").starts_with("HTTP/1.1 200"));
    assert!(ask(admin, "POST", "/quitquitquit").starts_with("HTTP/1.1 200"));
    assert_eq!(running.ended().code(), Some(0));
    let mut log = String::new();
    let mut stderr = running.0.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut log).expect("text");
    assert!(
        log.contains("][info][main] ") && log.contains("listener upstream listens on 127.0.0.1:"),
        "{log}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn it_ends_in_order_on_a_signal() {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::TERM, Signal::INT] {
        let dir = TestDir::new("signal");
        let (mut running, _) = start(&dir);
        let pid = Pid::from_child(&running.0);
        kill_process(pid, signal).expect("sent");
        assert_eq!(running.ended().code(), Some(0), "{signal:?}");
    }
}

#[test]
fn a_refused_plugin_configuration_ends_it_with_the_modules_own_words() {
    let dir = TestDir::new("refused");
    let module = dir.module(false);
    for more in [&[][..], &["--mode", "validate"]] {
        let mut flags = one_filter(&module);
        flags.extend(more);
        let output = proxy(&flags).output().expect("host-sim starts");
        let told = refusal(&output);
        assert!(
            told.contains("proxy_on_configure returned false; it logged: no colour"),
            "{told}"
        );
        let log = text(&output.stderr);
        let line =
            "][error][wasm] [source/extensions/common/wasm/context.cc:1184] wasm log: no colour\n";
        assert!(log.starts_with("[20") && log.contains(line), "{log}");
    }
}

#[test]
fn validating_takes_no_port() {
    let dir = TestDir::new("validate");
    let module = dir.module(true);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address").to_string();
    let mut flags = one_filter(&module);
    flags[3] = &address;
    let refused = refusal(&proxy(&flags).output().expect("host-sim starts"));
    assert!(
        refused.contains(&format!(
            "cannot listen on {address} for the listener upstream: "
        )),
        "{refused}"
    );
    flags.extend(["--mode", "validate"]);
    let output = proxy(&flags).output().expect("host-sim starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "the configuration is valid\n");
}

#[test]
fn a_file_that_is_not_understood_is_refused_with_its_place() {
    let dir = TestDir::new("file");
    let file = dir.file("envoy.yaml", "static_resources: {}\noverload_manager: {}\n");
    let output = proxy(&["-c", &file]).output().expect("host-sim starts");
    assert_eq!(
        refusal(&output),
        format!(
            "error: {file}: /overload_manager: found an object, understood: `node`, `admin`, `static_resources`; hint: leave it \
             out where your test does not depend on it, or run this file on Envoy"
        )
    );
}

#[test]
fn a_module_that_cannot_be_loaded_is_told_in_one_line() {
    let dir = TestDir::new("module");
    for (module, expected) in [
        (
            "/nowhere/filter.wasm".to_owned(),
            "error: cannot read the module /nowhere/filter.wasm: ",
        ),
        (
            dir.file("empty.wat", "(module)"),
            "exports none of proxy_abi_version_0_1_0",
        ),
        (
            dir.file("text.wasm", "hello"),
            "is no valid WebAssembly module: ",
        ),
    ] {
        let told = refusal(
            &proxy(&one_filter(&module))
                .output()
                .expect("host-sim starts"),
        );
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_told_with_its_place() {
    let dir = TestDir::new("tls");
    let module = dir.module(true);
    let text = dir.file("text.pem", "hello");
    let nowhere = dir.0.join("nowhere.pem").display().to_string();
    for (certificate, key, expected) in [
        (
            &nowhere,
            &text,
            format!("error: {nowhere}: cannot read the file: "),
        ),
        (
            &text,
            &nowhere,
            format!("error: {nowhere}: cannot read the file: "),
        ),
        (
            &text,
            &text,
            "error: TLS of the listener upstream cannot be used: the certificate chain of the listener holds no valid \
             certificate in PEM form; hint: give certificate and key in PEM form"
                .to_owned(),
        ),
    ] {
        let mut flags = one_filter(&module);
        flags.extend(["--tls-certificate", certificate, "--tls-key", key]);
        let told = refusal(&proxy(&flags).output().expect("host-sim starts"));
        assert!(told.starts_with(&expected), "{told}");
    }
}

#[test]
fn a_module_sees_the_variables_that_the_flags_name_and_no_others() {
    let dir = TestDir::new("environment");
    // Writes its variables to stdout, one behind the other with their zeros, which the host logs.
    let module = dir.file(
        "environment.wat",
        r#"(module
            (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "environ_get" (func $get (param i32 i32) (result i32)))
            (import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (func (export "malloc") (param i32) (result i32) i32.const 1024)
            (func (export "proxy_abi_version_0_2_1"))
            (func (export "proxy_on_configure") (param i32 i32) (result i32)
                (drop (call $sizes (i32.const 0) (i32.const 4)))
                (drop (call $get (i32.const 16) (i32.const 256)))
                (drop (call $log (i32.const 4) (i32.const 256) (i32.load (i32.const 4))))
                i32.const 1))"#,
    );
    let mut flags = one_filter(&module);
    flags.extend(["--mode", "validate", "--environment", "OF_HOST"]);
    flags.extend(["--environment", "SET=a=b", "--environment", "UNSET"]);
    let output = proxy(&flags)
        .env("OF_HOST", "c")
        .env("UNNAMED", "d")
        .output()
        .expect("host-sim starts");
    let log = text(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(
        log.contains("OF_HOST=c") && log.contains("SET=a=b"),
        "{log}"
    );
    assert!(!log.contains("UNSET") && !log.contains("UNNAMED"), "{log}");
}

/// A debug build compiles the module while other tests compile theirs.
const PATIENCE: Duration = Duration::from_secs(60);
