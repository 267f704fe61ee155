//! What a host tells a guest of the certificates in a connection: a client shows one after the other.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::host::Host;
use super::scenario::{Places, Scenario};
use crate::client::Answers;
use crate::client::tls::{Authority, ClientCertificate, Identity};
use crate::http1::request;

/// What the properties `connection.NAME` are for each of `clients`, a line each. The listener has the certificate of `gate`, and
/// wants one of its clients where there is an `authority` for them.
pub async fn told_of(
    host: &Host,
    names: &[&str],
    gate: &Identity,
    authority: Option<&Authority>,
    clients: &[Option<ClientCertificate>],
) -> Vec<Vec<String>> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("guests.tls.{}.{run}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the run");
    let operations = names.iter().map(|name| format!("prop connection.{name}"));
    let mut configuration = vec!["[request_headers]".to_owned()];
    configuration.extend(operations);
    let scenario = json!({"guest": "scripted", "configuration": configuration});
    let module = super::guests().join("scripted.wasm");
    let mut bootstrap = Scenario::of(scenario).bootstrap(&Places {
        module: &module,
        upstream: 1,
        grpc_upstream: 1,
        dead: 1,
    });
    let chain = bootstrap.pointer_mut("/static_resources/listeners/0/filter_chains/0");
    chain.expect("a filter chain")["transport_socket"] = match authority {
        Some(authority) => gate.transport_socket_for_clients_of(authority),
        None => gate.transport_socket(),
    };
    let running = host.start(&folder, &bootstrap);
    let listener = running.listener.expect("a host that serves");
    let answers = Answers::default();
    for client in clients {
        let mut connection = match client {
            Some(client) => gate.http1_as(client, listener, &answers).await,
            None => gate.http1(listener, &answers).await,
        };
        let call = request("GET", "/direct", &[], None);
        assert_eq!(connection.send(&call).await.status, 200);
    }
    let log = running.stop();
    let _removed = std::fs::remove_dir_all(&folder);
    let said: Vec<String> = log.lines().filter_map(told).collect();
    assert_eq!(said.len(), names.len() * clients.len(), "{log}");
    said.chunks(names.len()).map(<[String]>::to_vec).collect()
}

/// The property and its value in a line of the guest.
fn told(line: &str) -> Option<String> {
    let (_, said) = line.split_once("prop connection.")?;
    Some(said.to_owned())
}
