//! Metrics that guests define: one of each name for the whole process, whichever VM counts.

use std::collections::BTreeMap;

use crate::abi::{MetricType, Status};

/// A metric and what was counted so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// A counter's value.
    Counter(u64),
    /// A gauge's value.
    Gauge(u64),
    /// A histogram's samples, in the order in which they came.
    Histogram(Vec<u64>),
}

/// All metrics of a host.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    by_name: BTreeMap<String, Metric>,
    /// The name behind each id; several ids may lead to one name.
    ids: BTreeMap<u32, String>,
    next: u32,
}

impl Metrics {
    /// The value of a counter or gauge, or how many samples a histogram has; 0 for a name that nobody has defined.
    pub fn value(&self, name: &str) -> u64 {
        match self.by_name.get(name) {
            Some(Metric::Counter(value) | Metric::Gauge(value)) => *value,
            Some(Metric::Histogram(samples)) => samples.len() as u64,
            None => 0,
        }
    }

    /// The metrics in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Metric)> {
        self.by_name
            .iter()
            .map(|(name, metric)| (name.as_str(), metric))
    }

    /// Ids carry their kind in the two lowest bits, as in Envoy.
    pub(crate) fn define(&mut self, name: String, kind: MetricType) -> u32 {
        self.next += 1;
        let id = (self.next << 2) | kind as u32;
        let name = if self
            .by_name
            .get(&name)
            .is_some_and(|metric| kind_of(metric) != kind)
        {
            // Envoy keeps the kinds apart, so equal names do not meet.
            format!("{name} ({kind:?})")
        } else {
            name
        };
        self.by_name
            .entry(name.clone())
            .or_insert_with(|| match kind {
                MetricType::Counter => Metric::Counter(0),
                MetricType::Gauge => Metric::Gauge(0),
                MetricType::Histogram => Metric::Histogram(Vec::new()),
            });
        self.ids.insert(id, name);
        id
    }

    pub(crate) fn increment(&mut self, id: u32, offset: i64) -> Result<(), Status> {
        match self.metric(id) {
            Some(Metric::Counter(value)) => match u64::try_from(offset) {
                Ok(offset) if offset > 0 => {
                    *value = value.wrapping_add(offset);
                    Ok(())
                }
                _ => Err(Status::BadArgument),
            },
            Some(Metric::Gauge(value)) => {
                *value = value.wrapping_add_signed(offset);
                Ok(())
            }
            Some(Metric::Histogram(_)) => Err(Status::BadArgument),
            None => Err(missing(id)),
        }
    }

    pub(crate) fn record(&mut self, id: u32, sample: u64) -> Result<(), Status> {
        match self.metric(id) {
            Some(Metric::Counter(value)) => {
                *value = value.wrapping_add(sample);
                Ok(())
            }
            Some(Metric::Gauge(value)) => {
                *value = sample;
                Ok(())
            }
            Some(Metric::Histogram(samples)) => {
                samples.push(sample);
                Ok(())
            }
            None => Err(missing(id)),
        }
    }

    pub(crate) fn get(&mut self, id: u32) -> Result<u64, Status> {
        match self.metric(id) {
            Some(Metric::Counter(value) | Metric::Gauge(value)) => Ok(*value),
            Some(Metric::Histogram(_)) => Err(Status::BadArgument),
            None => Err(missing(id)),
        }
    }

    fn metric(&mut self, id: u32) -> Option<&mut Metric> {
        self.by_name.get_mut(self.ids.get(&id)?)
    }
}

fn kind_of(metric: &Metric) -> MetricType {
    match metric {
        Metric::Counter(_) => MetricType::Counter,
        Metric::Gauge(_) => MetricType::Gauge,
        Metric::Histogram(_) => MetricType::Histogram,
    }
}

/// An id of a known kind that nobody was given is not found; one whose low bits name no kind is a bad argument.
fn missing(id: u32) -> Status {
    match MetricType::from_number(id & 3) {
        Some(_) => Status::NotFound,
        None => Status::BadArgument,
    }
}
