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

/// All metrics of a host. Envoy keeps the kinds apart, so a counter and a gauge may have one name.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    by_name: BTreeMap<(String, MetricType), Metric>,
}

/// What the metrics of one VM are called there. Ids carry their kind in the two lowest bits, as in Envoy.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetricIds {
    names: BTreeMap<u32, (String, MetricType)>,
    last: BTreeMap<MetricType, u32>,
}

impl Metrics {
    /// The value of a counter or gauge, or how many samples a histogram has; 0 for a name that nobody has defined.
    pub fn value(&self, name: &str) -> u64 {
        let mut values = self
            .iter()
            .filter(|(found, _)| *found == name)
            .map(|(_, metric)| match metric {
                Metric::Counter(value) | Metric::Gauge(value) => *value,
                Metric::Histogram(samples) => samples.len() as u64,
            });
        values.next().unwrap_or(0)
    }

    /// The metrics in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Metric)> {
        self.by_name
            .iter()
            .map(|((name, _), metric)| (name.as_str(), metric))
    }

    fn define(&mut self, name: &str, kind: MetricType) {
        self.by_name
            .entry((name.to_owned(), kind))
            .or_insert_with(|| match kind {
                MetricType::Counter => Metric::Counter(0),
                MetricType::Gauge => Metric::Gauge(0),
                MetricType::Histogram => Metric::Histogram(Vec::new()),
            });
    }
}

impl MetricIds {
    pub(crate) fn define(&mut self, metrics: &mut Metrics, name: String, kind: MetricType) -> u32 {
        metrics.define(&name, kind);
        let last = self.last.entry(kind).or_default();
        *last += 1;
        let id = (*last << 2) | kind as u32;
        self.names.insert(id, (name, kind));
        id
    }

    pub(crate) fn increment(
        &self,
        metrics: &mut Metrics,
        id: u32,
        offset: i64,
    ) -> Result<(), Status> {
        match self.find(metrics, id).ok_or(missing(id))? {
            Metric::Counter(value) => match u64::try_from(offset) {
                Ok(offset) if offset > 0 => {
                    *value = value.wrapping_add(offset);
                    Ok(())
                }
                _ => Err(Status::BadArgument),
            },
            Metric::Gauge(value) => {
                *value = value.wrapping_add_signed(offset);
                Ok(())
            }
            Metric::Histogram(_) => Err(Status::BadArgument),
        }
    }

    pub(crate) fn record(&self, metrics: &mut Metrics, id: u32, sample: u64) -> Result<(), Status> {
        match self.find(metrics, id).ok_or(Status::NotFound)? {
            Metric::Counter(value) => *value = value.wrapping_add(sample),
            Metric::Gauge(value) => *value = sample,
            Metric::Histogram(samples) => samples.push(sample),
        }
        Ok(())
    }

    pub(crate) fn get(&self, metrics: &mut Metrics, id: u32) -> Result<u64, Status> {
        match self.find(metrics, id).ok_or(missing(id))? {
            Metric::Counter(value) | Metric::Gauge(value) => Ok(*value),
            Metric::Histogram(_) => Err(Status::BadArgument),
        }
    }

    fn find<'a>(&self, metrics: &'a mut Metrics, id: u32) -> Option<&'a mut Metric> {
        metrics.by_name.get_mut(self.names.get(&id)?)
    }
}

/// An id of a known kind that nobody was given is not found; one whose low bits name no kind is a bad argument.
fn missing(id: u32) -> Status {
    match MetricType::from_number(id & 3) {
        Some(_) => Status::NotFound,
        None => Status::BadArgument,
    }
}
