//! The admin interface: the part of Envoy's that harnesses and operators ask for. It shows no configuration text, no environment
//! and no request.

use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use regex::Regex;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::task::LocalSet;

use super::h1::{self, BodyReader, Incoming, Io, Limits, Outgoing, Part, RequestFault};
use super::settings::{Settings, Underscores};
use super::stats::Stats;
use super::threads::{self, Running};
use super::{Proxy, QuitSignal, StartError, manager};
use crate::header_map::HeaderMap;

/// What the admin interface knows.
pub(super) struct View {
    listeners: Vec<(String, SocketAddr)>,
    clusters: Vec<(String, Vec<String>)>,
    workers: usize,
    stats: Stats,
    quit: QuitSignal,
    start: Instant,
}

impl View {
    pub(super) fn new(proxy: &Proxy, settings: &Settings) -> View {
        let clusters = settings.clusters.iter();
        View {
            listeners: proxy.addresses.clone(),
            clusters: clusters
                .map(|cluster| (cluster.name.clone(), cluster.endpoints.clone()))
                .collect(),
            workers: settings.workers,
            stats: proxy.stats.clone(),
            quit: proxy.quit.clone(),
            start: Instant::now(),
        }
    }
}

/// Serves the admin interface on a thread of its own.
pub(super) fn start(
    listener: TcpListener,
    view: View,
    mut stopping: watch::Receiver<bool>,
) -> Result<Running, StartError> {
    threads::spawn("the admin interface", move |runtime, _ready, mut end| {
        let local = LocalSet::new();
        local.block_on(runtime, async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                return;
            };
            let view = Rc::new(view);
            tokio::task::spawn_local(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::task::spawn_local(serve(Box::new(stream), view.clone()));
                }
            });
            let _the_proxy_is_gone = stopping.wait_for(|stopping| *stopping).await;
            let _the_proxy_is_gone = end.wait_for(Option::is_some).await;
        });
    })
}

async fn serve(io: Box<dyn Io>, view: Rc<View>) {
    let (mut incoming, mut outgoing) = h1::split(io, BytesMut::new());
    let limits = Limits {
        bytes: 60 * 1024,
        fields: 100,
        underscores: Underscores::Allow,
        https_targets: false,
    };
    loop {
        let head = match h1::read_request(&mut incoming, limits).await {
            Ok(head) => head,
            Err(RequestFault::Gone) => return,
            Err(RequestFault::Refused(status)) => {
                let answer = Answer::text(status, "Bad Request");
                let _the_client_left = write(&mut outgoing, answer, false, true).await;
                return;
            }
        };
        if !skip_body(&mut incoming, head.framing).await {
            return;
        }
        let closes = head
            .headers
            .all("connection")
            .any(|value| h1::has_token(value, b"close"));
        let to_head = head.headers.first(":method") == Some(b"HEAD");
        let answer = answer(&view, &head.headers);
        let quits = answer.quits;
        if write(&mut outgoing, answer, to_head, closes).await.is_err() || closes {
            if quits {
                view.quit.request();
            }
            return;
        }
        if quits {
            view.quit.request();
        }
    }
}

async fn skip_body(incoming: &mut Incoming, framing: h1::Framing) -> bool {
    let mut body = BodyReader::new(framing);
    loop {
        match incoming.part(&mut body).await {
            Ok(Part::Data(_)) => {}
            Ok(Part::Trailers(_) | Part::End) => return true,
            Err(_) => return false,
        }
    }
}

struct Answer {
    status: u16,
    content_type: &'static str,
    body: String,
    quits: bool,
}

impl Answer {
    fn text(status: u16, body: impl Into<String>) -> Answer {
        Answer {
            status,
            content_type: "text/plain; charset=UTF-8",
            body: body.into(),
            quits: false,
        }
    }

    fn json(value: &Value) -> Answer {
        Answer {
            status: 200,
            content_type: "application/json",
            body: value.to_string(),
            quits: false,
        }
    }
}

fn answer(view: &View, headers: &HeaderMap) -> Answer {
    let target = headers.text(":path").unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parameter = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| decoded(value))
            .next()
    };
    match path {
        "/ready" => Answer::text(200, "LIVE\n"),
        "/listeners" if parameter("format").as_deref() == Some("json") => {
            Answer::json(&listeners(view))
        }
        "/listeners" => Answer::text(
            200,
            view.listeners
                .iter()
                .map(|(name, address)| format!("{name}::{address}\n"))
                .collect::<String>(),
        ),
        "/stats" => stats(view, parameter("filter").as_deref()),
        "/stats/prometheus" => Answer::text(200, view.stats.prometheus()),
        "/server_info" => Answer::json(&json!({
            "version": concat!("host-sim/", env!("CARGO_PKG_VERSION")),
            "state": "LIVE",
            "uptime_current_epoch": format!("{}s", view.start.elapsed().as_secs()),
            "concurrency": view.workers,
        })),
        "/clusters" => {
            let lines = view.clusters.iter().flat_map(|(name, endpoints)| {
                endpoints
                    .iter()
                    .map(move |endpoint| format!("{name}::{endpoint}::health_flags::healthy\n"))
            });
            Answer::text(200, lines.collect::<String>())
        }
        "/config_dump" => Answer::json(&json!({
            "listeners": listeners(view)["listener_statuses"],
            "clusters": view.clusters.iter().map(|(name, endpoints)| json!({"name": name, "endpoints": endpoints})).collect::<Vec<_>>(),
        })),
        "/quitquitquit" if headers.first(":method") == Some(b"POST") => Answer {
            quits: true,
            ..Answer::text(200, "OK\n")
        },
        "/quitquitquit" => Answer::text(405, "Method GET not allowed, POST required."),
        _ => Answer::text(
            404,
            "invalid path. hint: the paths are /ready, /listeners, /stats, /stats/prometheus, /server_info, /clusters, /config_dump and /quitquitquit\n",
        ),
    }
}

fn listeners(view: &View) -> Value {
    let statuses = view.listeners.iter().map(|(name, address)| {
        let socket = json!({"address": address.ip().to_string(), "port_value": address.port()});
        json!({"name": name, "local_address": {"socket_address": socket}})
    });
    json!({"listener_statuses": statuses.collect::<Vec<_>>()})
}

fn stats(view: &View, filter: Option<&str>) -> Answer {
    let filter = match filter.map(Regex::new).transpose() {
        Ok(filter) => filter,
        Err(error) => return Answer::text(400, format!("Invalid re2 regex: {error}\n")),
    };
    let wanted = |name: &str| filter.as_ref().is_none_or(|filter| filter.is_match(name));
    let lines = view
        .stats
        .all()
        .into_iter()
        .filter(|(name, _)| wanted(name));
    Answer::text(
        200,
        lines
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect::<String>(),
    )
}

/// A query value without its percent escapes.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let escape = (*byte == b'%').then(|| after.get(..2)).flatten();
        let escape = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn write(
    outgoing: &mut Outgoing,
    answer: Answer,
    to_head: bool,
    closes: bool,
) -> std::io::Result<()> {
    let mut headers = HeaderMap::new()
        .with(":status", answer.status.to_string())
        .with("content-length", answer.body.len().to_string())
        .with("content-type", answer.content_type)
        .with("cache-control", "no-cache, max-age=0")
        .with("x-content-type-options", "nosniff");
    manager::to_client(&mut headers, false);
    if closes {
        headers.add(b"connection", b"close");
    }
    let (head, body) = h1::response_head(&headers, false, to_head, false);
    outgoing.write_all(&head).await?;
    body.data(outgoing, &Bytes::from(answer.body), true).await?;
    if closes {
        outgoing.shutdown().await
    } else {
        Ok(())
    }
}
