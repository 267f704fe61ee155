//! Counters and gauges under Envoy's names, one of each for the whole process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::host::{Host, Metric, locked};

/// The statistics of a proxy. Clones show the same ones.
#[derive(Clone, Debug)]
pub struct Stats {
    host: Host,
    own: Arc<Mutex<BTreeMap<String, Stat>>>,
}

#[derive(Clone, Debug)]
struct Stat {
    value: Arc<AtomicU64>,
    is_gauge: bool,
}

/// One number.
#[derive(Clone, Debug)]
pub(super) struct Gauge(Arc<AtomicU64>);

/// Something that is going on. It is counted until it is dropped.
#[derive(Debug)]
pub(super) struct Held(Arc<AtomicU64>);

impl Stats {
    pub(super) fn new(host: &Host) -> Stats {
        Stats {
            host: host.clone(),
            own: Arc::default(),
        }
    }

    /// The value under Envoy's name, such as `http.ingress.downstream_rq_total` or `wasmcustom.hits`; 0 for a name that nobody has
    /// counted.
    pub fn value(&self, name: &str) -> u64 {
        if let Some(name) = name.strip_prefix(CUSTOM) {
            return self.host.metrics().value(name);
        }
        locked(&self.own)
            .get(name)
            .map_or(0, |stat| stat.value.load(Ordering::Relaxed))
    }

    pub(super) fn counter(&self, name: &str) -> Gauge {
        self.stat(name, false)
    }

    pub(super) fn gauge(&self, name: &str) -> Gauge {
        self.stat(name, true)
    }

    fn stat(&self, name: &str, is_gauge: bool) -> Gauge {
        let mut own = locked(&self.own);
        let stat = own.entry(name.to_owned()).or_insert_with(|| Stat {
            value: Arc::default(),
            is_gauge,
        });
        Gauge(stat.value.clone())
    }

    /// All of them, by name. A histogram shows how many samples it has.
    pub(super) fn all(&self) -> BTreeMap<String, u64> {
        let own = locked(&self.own);
        let mut all: BTreeMap<String, u64> = own
            .iter()
            .map(|(name, stat)| (name.clone(), stat.value.load(Ordering::Relaxed)))
            .collect();
        let metrics = self.host.metrics();
        all.extend(
            metrics
                .iter()
                .map(|(name, _)| (format!("{CUSTOM}{name}"), metrics.value(name))),
        );
        all
    }

    /// All of them in the form that Prometheus reads.
    pub(super) fn prometheus(&self) -> String {
        let mut text = String::new();
        let mut push = |name: &str, kind: &str, value: u64| {
            let name: String = name
                .chars()
                .map(|letter| {
                    if letter.is_ascii_alphanumeric() {
                        letter
                    } else {
                        '_'
                    }
                })
                .collect();
            text.push_str(&format!("# TYPE {name} {kind}\n{name}{{}} {value}\n"));
        };
        for (name, stat) in locked(&self.own).iter() {
            let kind = if stat.is_gauge { "gauge" } else { "counter" };
            push(
                &format!("envoy_{name}"),
                kind,
                stat.value.load(Ordering::Relaxed),
            );
        }
        let metrics = self.host.metrics();
        for (name, metric) in metrics.iter() {
            match metric {
                Metric::Counter(value) => push(name, "counter", *value),
                Metric::Gauge(value) => push(name, "gauge", *value),
                Metric::Histogram(samples) => {
                    push(&format!("{name}_count"), "counter", samples.len() as u64)
                }
            }
        }
        text
    }
}

impl Gauge {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn hold(&self) -> Held {
        self.add(1);
        Held(self.0.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What Envoy puts in front of the metrics that guests define.
const CUSTOM: &str = "wasmcustom.";
