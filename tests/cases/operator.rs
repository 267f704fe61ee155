//! What an operator runs: the files under `envoy/`, and the whole stack in one command.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use hoop_tests::answer;
use hoop_tests::client::{Answers, Connection};
use hoop_tests::host::Host;
use hoop_tests::http1::{request, request_to};
use hoop_tests::mcp::wire::{BOTH, JSON, messages, told, tool_call};
use hoop_tests::on_both_hosts;
use hoop_tests::real_plane::free_port;
use hoop_tests::scene::Folder;
use hoop_tests::{binaries, host, wait};
use host_sim_cli::bootstrap::Bootstrap;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::runtime::Builder;

on_both_hosts! {
    the_host_accepts_every_bootstrap_that_we_ship,
    the_whole_stack_starts_in_one_command_works_and_stops_without_a_trace,
    a_taken_port_is_told_in_one_line_that_names_its_flag,
    a_stop_of_the_whole_stack_keeps_what_was_filed,
    a_configuration_that_the_gate_refuses_ends_the_stack_with_the_reason,
    a_gate_that_ends_by_itself_ends_the_stack_with_the_reason,
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
        host.adapt(&mut bootstrap);
        let token = "hsc_0123456789012345678901234567890123456789";
        let (accepted, log) = host::validate(host, folder.path(), &bootstrap, token).await;
        assert!(accepted, "{}\n{log}", file.display());
        checked += 1;
    }
    assert_eq!(checked, 3, "envoy.yaml, grpc.yaml and mcp.yaml");
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

/// Ports of one `host-sim up`: gate, plane, upstream, admin; gate for gRPC, its service, its admin; approval tools, their
/// admin.
struct Ports([u16; 9]);

impl Ports {
    fn free() -> Ports {
        Ports([(); 9].map(|()| free_port()))
    }

    fn flags(&self) -> Vec<String> {
        let pairs = FLAGS.iter().zip(self.0);
        pairs
            .flat_map(|(flag, port)| [(*flag).to_owned(), format!("127.0.0.1:{port}")])
            .collect()
    }
}

const FLAGS: [&str; 9] = [
    "--listen",
    "--plane-listen",
    "--upstream-listen",
    "--admin-listen",
    "--grpc-listen",
    "--ledger-listen",
    "--grpc-admin-listen",
    "--mcp-listen",
    "--mcp-admin-listen",
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

/// A posting through the gate for gRPC, by the project's own client: what it was answered, and whether it was booked.
async fn post(ports: &Ports) -> (String, bool) {
    let output = Command::new(binaries::host_sim())
        .args(["ledger", "post", "--account", "demo/cash"])
        .args(["--amount", "120.00", "--deadline", "60"])
        .args(["--address", &format!("127.0.0.1:{}", ports.0[4])])
        .stdin(Stdio::null())
        .output();
    let output = wait::within("host-sim ledger", output)
        .await
        .expect("host-sim starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.is_empty(), "{told}");
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    (answer, output.status.success())
}

/// The approval that a posting waits for.
async fn pending_post(ports: &Ports) -> String {
    let (answer, is_booked) = post(ports).await;
    let mut lines = answer.lines();
    let status = lines.next().unwrap_or_default();
    assert!(
        !is_booked && status.starts_with("PERMISSION_DENIED (7): "),
        "{answer}"
    );
    let id = lines.find_map(|line| line.strip_prefix("x-hoop-approval-id: "));
    assert!(
        answer.contains("x-hoop-approval-status: PENDING"),
        "{answer}"
    );
    id.unwrap_or_else(|| panic!("no approval in {answer}"))
        .to_owned()
}

async fn a_posting_waits_for_a_person_who_reads_it_and_passes_once(ports: &Ports, data: &Path) {
    let plane = ports.0[1];
    let id = pending_post(ports).await;
    let shown = approvals(plane, data, &["show", &id]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let statement: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("  | "))
        .collect();
    assert_eq!(
        statement,
        [
            "/ledger.v1.Ledger/Post",
            "{",
            "  \"account\": \"demo/cash\",",
            "  \"amountMinor\": \"12000\",",
            "  \"currency\": \"CURRENCY_EUR\"",
            "}",
        ]
    );
    let approved = approvals(plane, data, &["approve", &id]).await;
    assert!(approved.status.success(), "{approved:?}");
    let (answer, is_booked) = post(ports).await;
    assert!(
        is_booked && answer.starts_with("booked: p-2  120.00 EUR to demo/cash"),
        "{answer}"
    );
    assert_ne!(pending_post(ports).await, id);
}

/// What the approval tools tell of an approval that another gate filed.
async fn told_by_the_tools(ports: &Ports, id: &str) -> Value {
    let [.., tools, _] = ports.0;
    let call = tool_call("approval_status", json!({"id": id}), None);
    let host = format!("127.0.0.1:{tools}");
    let call = request_to(&host, "POST", "/mcp", &[JSON, BOTH], Some(call.as_bytes()));
    let address = ([127, 0, 0, 1], tools).into();
    let mut connection = Connection::open(address, Answers::default()).await;
    told(&messages(&connection.send(&call).await)[0])
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
    let id = answer::pending_with_tools(&send("POST").await);
    assert_eq!(told_by_the_tools(&ports, &id).await["status"], "PENDING");
    let list = approvals(plane, folder.path(), &["list"]).await;
    let listed = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.status.success() && listed.contains(&id), "{list:?}");
    let approved = approvals(plane, folder.path(), &["approve", &id]).await;
    assert!(approved.status.success(), "{approved:?}");
    assert_eq!(send("POST").await.status, 200);
    assert_ne!(answer::pending_with_tools(&send("POST").await), id);
    a_posting_waits_for_a_person_who_reads_it_and_passes_once(&ports, folder.path()).await;

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
            .args(["--without-grpc", "--without-mcp"])
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
        .args(["--without-grpc", "--without-mcp"])
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

/// Of the two gates the second, whose end the first knows nothing of.
async fn a_gate_that_ends_by_itself_ends_the_stack_with_the_reason(host: Host) {
    let folder = Folder::create();
    let ports = Ports::free();
    let mut child = up(host, &ports, folder.path())
        .spawn()
        .expect("host-sim starts");
    printed(&mut child, &["Ctrl-C".to_owned()]).await;

    let quit = request("POST", "/quitquitquit", &[], Some(b""));
    let admin = ([127, 0, 0, 1], ports.0[6]).into();
    Connection::open(admin, Answers::default())
        .await
        .send(&quit)
        .await;

    let output = wait::within("host-sim up ends", child.wait_with_output())
        .await
        .expect("a child");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("ended with exit status: 0") && told.contains("ledger/envoy.log; hint:"),
        "{told}"
    );
    for port in ports.0 {
        TcpListener::bind(("127.0.0.1", port))
            .unwrap_or_else(|cause| panic!("port {port} after the end: {cause}"));
    }
}

/// The simulator has no filter that unpacks gRPC-Web, so this runs on Envoy.
#[test]
fn a_grpc_web_call_waits_for_the_approval_of_the_same_grpc_call() {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let folder = Folder::create();
        let ports = Ports::free();
        let mut child = up(Host::Envoy, &ports, folder.path())
            .spawn()
            .expect("host-sim starts");
        printed(&mut child, &["Ctrl-C".to_owned()]).await;

        let id = pending_post(&ports).await;
        // `demo/cash`, 12000 in the minor unit, euro: the message of the posting above, in its frame.
        let message = b"\0\0\0\0\x10\x0a\x09demo/cash\x10\xe0\x5d\x18\x02";
        let web = [("content-type", "application/grpc-web+proto")];
        let call = request("POST", "/ledger.v1.Ledger/Post", &web, Some(message));
        let gate = ([127, 0, 0, 1], ports.0[4]).into();
        let answer = Connection::open(gate, Answers::default())
            .await
            .send(&call)
            .await;

        assert_eq!(answer.header("x-hoop-approval-id"), Some(id), "{answer}");
        assert_eq!(answer.header("grpc-status").as_deref(), Some("7"));
        let kind = answer.header("content-type");
        assert_eq!(kind.as_deref(), Some("application/grpc-web+proto"));
    });
}
