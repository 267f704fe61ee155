//! Performs one operation of a script and tells what the host answered.

use crate::guest::{Frame, Known};
use crate::names::{self, BUFFERS, MAPS, METRICS, STREAMS};
use crate::text::{bytes, pairs_to_bytes, show, show_data, show_pairs};
use crate::{abi, matrix};

/// What an operation came to.
pub enum Outcome {
    /// The host's answer, as one line of the transcript.
    Answer(String),
    /// The callback shall return this number.
    Return(u32),
    /// More operations to perform in its place.
    Expanded(Vec<String>),
}

/// Performs `line`, which was written for the callback that `frame` describes.
pub fn perform(known: &mut Known, frame: &Frame, line: &str) -> Outcome {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some((name, words)) = words.split_first() else {
        return Outcome::Answer("nothing".to_owned());
    };
    match *name {
        "return" => return Outcome::Return(number(known, frame, words, 0) as u32),
        "matrix" => return Outcome::Expanded(matrix::operations(words.first().unwrap_or(&""))),
        _ => {}
    }
    let answer = headers(name, words)
        .or_else(|| buffers(known, frame, name, words))
        .or_else(|| properties(name, words))
        .or_else(|| streams(known, frame, name, words))
        .or_else(|| callouts(known, frame, name, words))
        .or_else(|| shared(known, frame, name, words))
        .or_else(|| metrics(known, frame, name, words))
        .or_else(|| general(known, frame, name, words));
    Outcome::Answer(answer.unwrap_or_else(|| "unknown operation".to_owned()))
}

fn headers(name: &str, words: &[&str]) -> Option<String> {
    let map = names::number(&MAPS, word(words, 0));
    let (key, value) = (bytes(word(words, 1)), bytes(word(words, 2)));
    Some(match name {
        "get" => {
            let (status, data) = abi::value(map, &key);
            format!("{status} {}", show_data(&data))
        }
        "pairs" => {
            let (status, data) = abi::map(map);
            format!("{status} {}", show_pairs(&data))
        }
        "count" => {
            let (status, data) = abi::map(map);
            let count = data.as_deref().and_then(crate::text::pairs_from_bytes);
            format!(
                "{status} {}",
                count.map_or("none".to_owned(), |pairs| pairs.len().to_string())
            )
        }
        "size" => {
            let (status, size) = abi::map_size(map);
            format!("{status} {}", number_or_unset(size as u64))
        }
        "size?" => format!("{}", abi::map_size(map).0),
        "add" => format!("{}", abi::add(map, &key, &value)),
        "replace" => format!("{}", abi::replace(map, &key, &value)),
        "remove" => format!("{}", abi::remove(map, &key)),
        "setpairs" => format!(
            "{}",
            abi::set_map(map, &pairs_to_bytes(&pairs(&words[1..])))
        ),
        "setpairsraw" => format!("{}", abi::set_map(map, &key)),
        "addmany" => {
            let mut statuses = Vec::new();
            for index in 0..word(words, 1).parse().unwrap_or(0_u32) {
                statuses.push(abi::add(map, format!("x-many-{index}").as_bytes(), b"v"));
            }
            statuses.dedup();
            format!("{statuses:?}")
        }
        _ => return None,
    })
}

fn buffers(known: &Known, frame: &Frame, name: &str, words: &[&str]) -> Option<String> {
    let buffer = names::number(&BUFFERS, word(words, 0));
    let range = |index| number(known, frame, words, index) as u32 as usize;
    Some(match name {
        "buf" => {
            let (status, data) = abi::buffer(buffer, range(1), range(2));
            format!("{status} {}", show_data(&data))
        }
        "bufstatus" => {
            let (status, size, flags) = abi::buffer_status(buffer);
            format!(
                "{status} size={} flags={}",
                number_or_unset(size as u64),
                number_or_unset(flags.into())
            )
        }
        "setbuf" => {
            format!(
                "{}",
                abi::set_buffer(buffer, range(1), range(2), &bytes(word(words, 3)))
            )
        }
        _ => return None,
    })
}

fn properties(name: &str, words: &[&str]) -> Option<String> {
    let path = bytes(&word(words, 0).replace('.', "%00"));
    Some(match name {
        "prop" => {
            let (status, data) = abi::property(&path);
            format!("{status} {}", show_data(&data))
        }
        "prop?" => {
            let (status, data) = abi::property(&path);
            let size = data.map_or("null".to_owned(), |data| format!("{} bytes", data.len()));
            format!("{status} {size}")
        }
        "prop!" => format!("{}", abi::property(&path).0),
        "setprop" => format!("{}", abi::set_property(&path, &bytes(word(words, 1)))),
        _ => return None,
    })
}

fn streams(known: &Known, frame: &Frame, name: &str, words: &[&str]) -> Option<String> {
    let stream = names::number(&STREAMS, word(words, 0));
    Some(match name {
        "continue" => format!("{}", abi::continue_stream(stream)),
        "close" => format!("{}", abi::close_stream(stream)),
        "reply" => {
            let status = number(known, frame, words, 0) as u32;
            let (details, body) = (bytes(word(words, 1)), bytes(word(words, 2)));
            let rest = words.get(3..).unwrap_or_default();
            let grpc = rest.iter().find_map(|word| word.strip_prefix("grpc="));
            let grpc = grpc.and_then(|word| word.parse().ok()).unwrap_or(-1);
            let rest: Vec<&str> = rest
                .iter()
                .copied()
                .filter(|word| !word.starts_with("grpc="))
                .collect();
            let headers = pairs_to_bytes(&pairs(&rest));
            format!("{}", abi::reply(status, &details, &body, &headers, grpc))
        }
        "ctx" => {
            format!(
                "{}",
                abi::set_effective_context(number(known, frame, words, 0) as u32)
            )
        }
        "done" => format!("{}", abi::done()),
        _ => return None,
    })
}

fn callouts(known: &mut Known, frame: &Frame, name: &str, words: &[&str]) -> Option<String> {
    let rest = words.get(2..).unwrap_or_default();
    let part = |name: &str| {
        let found = rest.iter().find_map(|word| word.strip_prefix(name));
        found.map(bytes).unwrap_or_default()
    };
    let named = |prefix: &str| {
        let found = rest.iter().filter_map(|word| word.strip_prefix(prefix));
        pairs_to_bytes(&pairs(&found.collect::<Vec<_>>()))
    };
    let token = number(known, frame, words, 0) as u32;
    let upstream = bytes(word(words, 0));
    let upstream = match upstream.strip_prefix(b"grpc:") {
        Some(cluster) => grpc_service(cluster),
        None => upstream,
    };
    let timeout = number(known, frame, words, 1) as u32;
    let (status, token) = match name {
        "call" => {
            let trailers = if rest.iter().any(|word| word.starts_with("t:")) {
                named("t:")
            } else {
                Vec::new()
            };
            abi::http_call(&upstream, &named("h:"), &part("body="), &trailers, timeout)
        }
        "grpccall" => abi::grpc_call(
            &upstream,
            &part("service="),
            &part("method="),
            &named("h:"),
            &part("message="),
            timeout,
        ),
        "grpcstream" => {
            abi::grpc_stream(&upstream, &part("service="), &part("method="), &named("h:"))
        }
        "grpcsend" => {
            let end = number(known, frame, words, 2) as u32;
            return Some(format!(
                "{}",
                abi::grpc_send(token, &bytes(word(words, 1)), end)
            ));
        }
        "grpccancel" => return Some(format!("{}", abi::grpc_cancel(token))),
        "grpcclose" => return Some(format!("{}", abi::grpc_close(token))),
        "getstatus" => {
            let (status, code, data) = abi::call_status();
            return Some(format!(
                "{status} code={} {}",
                number_or_unset(code.into()),
                show_data(&data)
            ));
        }
        _ => return None,
    };
    if status == 0 {
        known.token = token;
        known.owners.insert(token, frame.owner);
    }
    Some(format!("{status} token={}", number_or_unset(token.into())))
}

fn shared(known: &mut Known, frame: &Frame, name: &str, words: &[&str]) -> Option<String> {
    let key = bytes(word(words, 0));
    let value = bytes(word(words, 1));
    Some(match name {
        "shared.get" => {
            let (status, data, cas) = abi::shared_data(&key);
            if status == 0 {
                known.cas = cas;
            }
            format!(
                "{status} {} cas={}",
                show_data(&data),
                number_or_unset(cas.into())
            )
        }
        "shared.set" => {
            let cas = number(known, frame, words, 2) as u32;
            format!("{}", abi::set_shared_data(&key, &value, cas))
        }
        "queue.register" | "queue.resolve" => {
            let (status, id) = match name {
                "queue.register" => abi::register_queue(&key),
                _ => abi::resolve_queue(&key, &value),
            };
            if status == 0 {
                known.queue = id;
            }
            format!("{status} id={}", number_or_unset(id.into()))
        }
        "queue.enqueue" => {
            format!(
                "{}",
                abi::enqueue(number(known, frame, words, 0) as u32, &value)
            )
        }
        "queue.dequeue" => {
            let (status, data) = abi::dequeue(number(known, frame, words, 0) as u32);
            format!("{status} {}", show_data(&data))
        }
        _ => return None,
    })
}

fn metrics(known: &mut Known, frame: &Frame, name: &str, words: &[&str]) -> Option<String> {
    let id = known.metrics.get(word(words, 0)).copied();
    let id = id.unwrap_or_else(|| number(known, frame, words, 0) as u32);
    let amount = number(known, frame, words, 1);
    Some(match name {
        "metric.define" => {
            let kind = names::number(&METRICS, word(words, 0));
            let (status, id) = abi::define_metric(kind, &bytes(word(words, 1)));
            if status == 0 {
                known.metrics.insert(word(words, 1).to_owned(), id);
            }
            format!("{status} id={}", number_or_unset(id.into()))
        }
        "metric.increment" => format!("{}", abi::increment_metric(id, amount)),
        "metric.record" => format!("{}", abi::record_metric(id, amount as u64)),
        "metric.get" => {
            let (status, value) = abi::metric(id);
            format!("{status} {}", number_or_unset(value))
        }
        _ => return None,
    })
}

fn general(known: &Known, frame: &Frame, name: &str, words: &[&str]) -> Option<String> {
    Some(match name {
        "log" => {
            let level = number(known, frame, words, 0) as u32;
            format!(
                "{}",
                abi::log_at(level, &format!("said: {}", words[1..].join(" ")))
            )
        }
        "note" => words.join(" "),
        "loglevel" => {
            let (status, level) = abi::log_level();
            format!("{status} {}", number_or_unset(level.into()))
        }
        "time" => {
            let (status, time) = abi::current_time();
            let sane = time > 1_700_000_000_000_000_000;
            format!(
                "{status} {}",
                if sane { "after 2023" } else { "before 2023" }
            )
        }
        "tick" => {
            format!(
                "{}",
                abi::set_tick_period(number(known, frame, words, 0) as u32)
            )
        }
        "foreign" | "foreign?" => {
            let (status, data) = abi::foreign(&bytes(word(words, 0)), &bytes(word(words, 1)));
            match name {
                "foreign" => format!("{status} {}", show_data(&data)),
                _ => format!("{status} {}", data.map_or("null", |_| "some")),
            }
        }
        "foreign2" => {
            // The output of the first function is the input of the second.
            let (first, data) = abi::foreign(&bytes(word(words, 0)), &bytes(word(words, 2)));
            let (second, data) = abi::foreign(&bytes(word(words, 1)), &data.unwrap_or_default());
            format!("{first} {second} {}", show_data(&data))
        }
        "outside" => {
            let all = abi::outside_calls();
            let all: Vec<String> = all
                .iter()
                .map(|(name, status)| format!("{name}={status}"))
                .collect();
            all.join(", ")
        }
        "env" => match std::env::var(word(words, 0)) {
            Ok(value) => show(value.as_bytes()),
            Err(_) => "unset".to_owned(),
        },
        "envs" => {
            let mut all: Vec<String> = std::env::vars()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            all.sort();
            format!("{all:?}")
        }
        "args" => format!("{:?}", std::env::args().collect::<Vec<_>>()),
        "print" => {
            println!("{}", words.join(" "));
            "printed".to_owned()
        }
        "eprint" => {
            eprintln!("{}", words.join(" "));
            "printed".to_owned()
        }
        "trap" => std::process::abort(),
        "exit" => std::process::exit(number(known, frame, words, 0) as i32),
        "panic" => panic!("a panic on purpose"),
        "grow" => grow(),
        _ => return None,
    })
}

/// Asks for memory until none is left.
fn grow() -> ! {
    loop {
        std::mem::forget(vec![1_u8; 16 << 20]);
    }
}

/// `GrpcService { envoy_grpc: EnvoyGrpc { cluster_name } }` of Envoy's `config.core.v3`.
fn grpc_service(cluster: &[u8]) -> Vec<u8> {
    let mut inner = vec![0x0a, cluster.len() as u8];
    inner.extend(cluster);
    let mut outer = vec![0x0a, inner.len() as u8];
    outer.extend(inner);
    outer
}

fn word<'a>(words: &[&'a str], index: usize) -> &'a str {
    words.get(index).copied().unwrap_or("\"\"")
}

/// A number of a script; `$` names one that an earlier answer gave.
fn number(known: &Known, frame: &Frame, words: &[&str], index: usize) -> i64 {
    match word(words, index) {
        "$cas" => known.cas.into(),
        "$last" => known.last_stream.into(),
        "$own" => frame.owner.into(),
        "$queue" => known.queue.into(),
        "$token" => known.token.into(),
        "max" => u32::MAX.into(),
        word => word.parse().unwrap_or(0),
    }
}

/// Places for an answer start with all bits set, so that an answer that was not written shows.
fn number_or_unset(value: u64) -> String {
    if value == u64::MAX || value == u64::from(u32::MAX) {
        "unset".to_owned()
    } else {
        value.to_string()
    }
}

fn pairs(words: &[&str]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pairs = words.iter().filter_map(|word| word.split_once('='));
    pairs
        .map(|(name, value)| (bytes(name), bytes(value)))
        .collect()
}
