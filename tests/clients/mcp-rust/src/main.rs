//! Speaks to an MCP server through the official Rust SDK, and prints as JSON lines what the library shows of it.
//!
//! ```text
//! mcp-rust auto|legacy URL list
//! mcp-rust auto|legacy URL call TOOL ARGUMENTS [--progress] [--cancel-after COUNT]
//! ```
//!
//! `auto` asks `server/discover` first, `legacy` shakes hands. The library asks for progress with every request, so `--progress`
//! changes nothing here. A call is cancelled in the library's own way, with its handle, once so many progress notifications have
//! come (0: half a second after it was sent). Every client in tests/clients/mcp-* prints the same lines.

use std::process::ExitCode;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientRequest, JsonObject, ProgressNotificationParam, ProtocolVersion,
    Request,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext,
    PeerRequestOptions, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long a client stays connected after it has cancelled, so that a case sees what the library does about it.
const LINGER: Duration = Duration::from_secs(1);

/// Prints each progress notification and passes on that there was one.
struct Printer {
    seen: UnboundedSender<()>,
}

impl ClientHandler for Printer {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        tell(
            "progress",
            json!({"progress": progress.progress, "total": progress.total, "message": progress.message}),
        );
        let _nobody_counts = self.seen.send(());
    }
}

/// What the command line asks for.
enum Command {
    List,
    Call {
        tool: String,
        arguments: JsonObject,
        cancel_after: Option<usize>,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((lifecycle, url, command)) = parse(&words) else {
        eprintln!(
            "mcp-rust: auto|legacy URL list|call TOOL ARGUMENTS [--progress] [--cancel-after COUNT]"
        );
        return ExitCode::FAILURE;
    };
    if let Err(error) = run(lifecycle, url, command).await {
        tell("error", error);
    }
    ExitCode::SUCCESS
}

fn parse(words: &[String]) -> Option<(ClientLifecycleMode, &str, Command)> {
    let [lifecycle, url, rest @ ..] = words else {
        return None;
    };
    let lifecycle = match lifecycle.as_str() {
        "auto" => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        },
        "legacy" => ClientLifecycleMode::Initialize,
        _ => return None,
    };
    let command = match rest {
        [list] if list == "list" => Command::List,
        [call, tool, arguments, flags @ ..] if call == "call" => Command::Call {
            tool: tool.clone(),
            arguments: serde_json::from_str(arguments).ok()?,
            cancel_after: match flags.iter().position(|flag| flag == "--cancel-after") {
                Some(place) => Some(flags.get(place + 1)?.parse().ok()?),
                None => None,
            },
        },
        _ => return None,
    };
    Some((lifecycle, url, command))
}

async fn run(lifecycle: ClientLifecycleMode, url: &str, command: Command) -> Result<(), Value> {
    let (seen, progress) = unbounded_channel();
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = Printer { seen }.serve_with_lifecycle(transport, lifecycle);
    let client = client.await.map_err(not_connected)?;
    let server = client
        .peer_info()
        .ok_or_else(|| json!({"message": "no server info"}))?;
    tell(
        "connected",
        json!({"version": server.protocol_version, "server": server.server_info}),
    );
    match command {
        Command::List => {
            let tools = client.list_all_tools().await.map_err(failed)?;
            tell("tools", json!({ "tools": tools }));
        }
        Command::Call {
            tool,
            arguments,
            cancel_after,
        } => {
            let parameters = CallToolRequestParams::new(tool).with_arguments(arguments);
            call(&client, parameters, cancel_after, progress)
                .await
                .map_err(failed)?;
        }
    }
    let ended = client.cancel().await;
    ended.map_err(|error| json!({"message": error.to_string()}))?;
    tell("closed", json!({}));
    Ok(())
}

async fn call(
    client: &RunningService<RoleClient, Printer>,
    parameters: CallToolRequestParams,
    cancel_after: Option<usize>,
    mut progress: UnboundedReceiver<()>,
) -> Result<(), ServiceError> {
    let request = ClientRequest::CallToolRequest(Request::new(parameters));
    let options = PeerRequestOptions::no_options();
    let mut handle = client.send_cancellable_request(request, options).await?;
    tokio::select! {
        answer = &mut handle.rx => {
            let result = answer.map_err(|_sender_is_gone| ServiceError::TransportClosed)??;
            tell("result", json!({ "result": result }));
        }
        () = enough(cancel_after, &mut progress) => {
            handle.cancel(Some("no longer needed".to_owned())).await?;
            tell("cancelled", json!({}));
            tokio::time::sleep(LINGER).await;
        }
    }
    Ok(())
}

/// Returns once it is time to cancel, which may be never.
async fn enough(cancel_after: Option<usize>, progress: &mut UnboundedReceiver<()>) {
    match cancel_after {
        None => std::future::pending().await,
        Some(0) => tokio::time::sleep(Duration::from_millis(500)).await,
        Some(count) => {
            for _ in 0..count {
                progress.recv().await;
            }
        }
    }
}

fn not_connected(error: ClientInitializeError) -> Value {
    json!({"code": null, "kind": "ClientInitializeError", "message": chain(&error)})
}

fn failed(error: ServiceError) -> Value {
    let code = if let ServiceError::McpError(said) = &error {
        Some(said.code.0)
    } else {
        None
    };
    json!({"code": code, "kind": "ServiceError", "message": chain(&error)})
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

fn tell(event: &str, mut fields: Value) {
    fields["event"] = event.into();
    println!("{fields}");
}
