//! What an operator runs: the files under `envoy/`, and the whole stack in one command.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use hoop_tests::answer;
use hoop_tests::client::{Answers, Connection};
use hoop_tests::host::Host;
use hoop_tests::http1::request;
use hoop_tests::on_both_hosts;
use hoop_tests::real_plane::free_port;
use hoop_tests::scene::Folder;
use hoop_tests::{binaries, host, wait};
use host_sim_cli::bootstrap::Bootstrap;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

on_both_hosts! {
    the_host_accepts_every_bootstrap_that_we_ship,
    the_whole_stack_starts_in_one_command_works_and_stops_without_a_trace,
    a_taken_port_is_told_in_one_line_that_names_its_flag,
    a_stop_of_the_whole_stack_keeps_what_was_filed,
    a_configuration_that_the_gate_refuses_ends_the_stack_with_the_reason,
}

async fn the_host_accepts_every_bootstrap_that_we_ship(host: Host) {
    let mut checked = 0;
    for file in yaml_files(&binaries::workspace().join("envoy")) {
        let folder = Folder::create();
        let mut bootstrap = match Bootstrap::load(&file) {
            Ok(bootstrap) => bootstrap,
            Err(cause) => panic!("{}: {cause}", file.display()),
        };
        bootstrap
            .set_wasm_module(&binaries::filter_module())
            .expect("the gate's place");
        let token = "hsc_0123456789012345678901234567890123456789";
        let (accepted, log) = host::validate(host, folder.path(), &bootstrap, token).await;
        assert!(accepted, "{}\n{log}", file.display());
        checked += 1;
    }
    assert!(checked > 0, "no bootstrap under envoy/");
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder envoy/");
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml" || extension == "yml")
        })
        .collect();
    files.sort();
    files
}

/// Ports of one `host-sim up`: gate, plane, upstream, admin.
struct Ports([u16; 4]);

impl Ports {
    fn free() -> Ports {
        Ports([free_port(), free_port(), free_port(), free_port()])
    }

    fn flags(&self) -> Vec<String> {
        let pairs = FLAGS.iter().zip(self.0);
        pairs
            .flat_map(|(flag, port)| [(*flag).to_owned(), format!("127.0.0.1:{port}")])
            .collect()
    }
}

const FLAGS: [&str; 4] = [
    "--listen",
    "--plane-listen",
    "--upstream-listen",
    "--admin-listen",
];

fn up(host: Host, ports: &Ports, data: &Path) -> Command {
    let mut command = Command::new(binaries::host_sim());
    command
        .arg("up")
        .args(ports.flags())
        .arg("--data-dir")
        .arg(data)
        .args(host.up_flags())
        .arg("--wasm")
        .arg(binaries::filter_module())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Reads what the command prints until each of `words` has come.
async fn printed(child: &mut Child, words: &[String]) -> String {
    let stdout = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(stdout).lines();
    let mut text = String::new();
    let reading = async {
        while !words.iter().all(|word| text.contains(word.as_str())) {
            match lines.next_line().await {
                Ok(Some(line)) => {
                    text.push_str(&line);
                    text.push('\n');
                }
                _ => panic!("host-sim up ended before it printed {words:?}\n{text}"),
            }
        }
    };
    wait::within("the table of host-sim up", reading).await;
    // What comes later is read and dropped, so that a full pipe stops nobody.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    text
}

async fn approvals(plane: u16, data: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(binaries::host_sim())
        .arg("approvals")
        .args(arguments)
        .arg("--plane")
        .arg(format!("http://127.0.0.1:{plane}"))
        .arg("--data-dir")
        .arg(data)
        .stdin(Stdio::null())
        .output();
    wait::within("host-sim approvals", output)
        .await
        .expect("host-sim starts")
}

async fn the_whole_stack_starts_in_one_command_works_and_stops_without_a_trace(host: Host) {
    let folder = Folder::create();
    let ports = Ports::free();
    let [gate, plane, ..] = ports.0;
    let mut child = up(host, &ports, folder.path())
        .spawn()
        .expect("host-sim starts");
    let mut words: Vec<String> = ports
        .0
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    words.push("Ctrl-C".to_owned());
    printed(&mut child, &words).await;

    let send = async |method: &str| {
        let call = request(
            method,
            "/payments/42/refund",
            &[],
            Some(b"{\"amount\": 120}"),
        );
        let address = ([127, 0, 0, 1], gate).into();
        Connection::open(address, Answers::default())
            .await
            .send(&call)
            .await
    };
    assert_eq!(send("GET").await.status, 200);
    let id = answer::pending(&send("POST").await);
    let list = approvals(plane, folder.path(), &["list"]).await;
    let listed = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.status.success() && listed.contains(&id), "{list:?}");
    let approved = approvals(plane, folder.path(), &["approve", &id]).await;
    assert!(approved.status.success(), "{approved:?}");
    assert_eq!(send("POST").await.status, 200);
    assert_ne!(answer::pending(&send("POST").await), id);

    let pid = child.id().expect("a running process").to_string();
    let interrupted = Command::new("kill").args(["-INT", &pid]).status().await;
    assert!(interrupted.expect("kill").success());
    let status = wait::within("host-sim up stops", child.wait())
        .await
        .expect("a child");
    assert!(status.success(), "{status}");
    for port in ports.0 {
        TcpListener::bind(("127.0.0.1", port))
            .unwrap_or_else(|cause| panic!("port {port} after the stop: {cause}"));
    }
}

async fn a_taken_port_is_told_in_one_line_that_names_its_flag(host: Host) {
    for (index, flag) in FLAGS.into_iter().enumerate() {
        let folder = Folder::create();
        let ports = Ports::free();
        let _taken = TcpListener::bind(("127.0.0.1", ports.0[index])).expect("a free port");

        let output = wait::within("host-sim up", up(host, &ports, folder.path()).output()).await;

        let output = output.expect("host-sim starts");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{flag}: {told}");
        let errors: Vec<&str> = told.lines().filter(|line| line.contains("error")).collect();
        assert_eq!(errors.len(), 1, "{flag}: {told}");
        assert!(errors[0].contains(&format!("`{flag} ")), "{flag}: {told}");
        assert!(
            errors[0].contains(&ports.0[index].to_string()),
            "{flag}: {told}"
        );
        for (other, port) in ports.0.into_iter().enumerate() {
            if other != index {
                let free = TcpListener::bind(("127.0.0.1", port));
                assert!(
                    free.is_ok(),
                    "port {port} is still taken after the refusal of {flag}"
                );
            }
        }
    }
}

async fn a_stop_of_the_whole_stack_keeps_what_was_filed(host: Host) {
    let folder = Folder::create();
    let ports = Ports::free();
    let [gate, plane, ..] = ports.0;
    let call = request("POST", "/payments/42", &[], Some(b"x"));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut child = up(host, &ports, folder.path())
            .spawn()
            .expect("host-sim starts");
        printed(&mut child, &["Ctrl-C".to_owned()]).await;
        let mut connection =
            Connection::open(([127, 0, 0, 1], gate).into(), Answers::default()).await;
        ids.push(answer::pending(&connection.send(&call).await));
        if ids.len() == 2 {
            let approved = approvals(plane, folder.path(), &["approve", &ids[0]]).await;
            assert!(approved.status.success(), "{approved:?}");
            assert_eq!(connection.send(&call).await.status, 200);
        }
        let pid = child.id().expect("a running process").to_string();
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .await
            .expect("kill");
        wait::within("host-sim up stops", child.wait())
            .await
            .expect("a child");
    }
    assert_eq!(ids[0], ids[1]);
}

async fn a_configuration_that_the_gate_refuses_ends_the_stack_with_the_reason(host: Host) {
    let folder = Folder::create();
    let file = folder.path().join("filter.json");
    std::fs::write(&file, "{\"listner_name\": \"a\"}").expect("a file");
    let ports = Ports::free();
    let output = up(host, &ports, folder.path())
        .arg("--filter-config")
        .arg(&file)
        .output();
    let output = wait::within("host-sim up", output)
        .await
        .expect("host-sim starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("listner_name") && told.contains("hint:"),
        "{told}"
    );
}
