//! Headers and trailers as Envoy keeps them: lower-case names, repeated values, pseudo-headers in front, bytes and not text.

use bytes::Bytes;

/// A list of headers or trailers.
///
/// Names are stored in lower case. A value may hold any byte, as a client may send any. In the maps that a filter sees, names that
/// Envoy keeps in a field of their own (`content-type`, `:path`, ...) cannot stand twice: a second value is joined to the first with
/// a comma. Which names these are differs between requests and responses.
///
/// ```
/// use host_sim::HeaderMap;
///
/// let map = HeaderMap::new().with("X-Team", "red").with("x-team", "blue");
/// assert_eq!(map.first("x-team"), Some(b"red".as_slice()));
/// assert_eq!(map.all("x-team").count(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderMap {
    entries: Vec<(Bytes, Bytes)>,
    joining: Joining,
}

/// Which names cannot stand twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Joining {
    /// None: a list as somebody wrote it.
    #[default]
    Nothing,
    /// Those of a request's headers.
    Request,
    /// Those of a response's headers.
    Response,
}

/// Two maps are equal when they say the same, whatever may be added to them.
impl PartialEq for Joining {
    fn eq(&self, _: &Joining) -> bool {
        true
    }
}

impl Eq for Joining {}

impl HeaderMap {
    /// A map without entries.
    pub fn new() -> HeaderMap {
        HeaderMap::default()
    }

    /// This map and one more entry, for building one in a single expression.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> HeaderMap {
        self.add(name.as_bytes(), value.as_ref());
        self
    }

    /// The first value of `name`, which is all that `proxy_get_header_map_value` shows a filter.
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        let same = |(found, _): &&(Bytes, Bytes)| found.eq_ignore_ascii_case(name.as_bytes());
        self.entries.iter().find(same).map(|(_, value)| &value[..])
    }

    /// The first value of `name` as text; `None` also where it is no UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.first(name)?).ok()
    }

    /// Every value of `name`, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let same = move |(found, _): &&(Bytes, Bytes)| found.eq_ignore_ascii_case(name.as_bytes());
        self.entries
            .iter()
            .filter(same)
            .map(|(_, value)| &value[..])
    }

    /// Whether `name` stands in the map.
    pub fn contains(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// This map with the names joined that cannot stand twice in a map of that kind.
    pub(crate) fn joined(self, joining: Joining) -> HeaderMap {
        let mut map = HeaderMap {
            entries: Vec::with_capacity(self.entries.len()),
            joining,
        };
        for (name, value) in self.entries {
            map.add_entry(name, value);
        }
        map
    }

    /// Takes the entries of `other`, and joins names as this map does.
    pub(crate) fn replace_all(&mut self, other: HeaderMap) {
        *self = other.joined(self.joining);
    }

    /// Adds a value, as Envoy's `addCopy` does: see the type's own text for names that cannot repeat.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        self.add_entry(lower(name), Bytes::copy_from_slice(value));
    }

    fn add_entry(&mut self, name: Bytes, value: Bytes) {
        let name = match self.joining {
            Joining::Request if name == "host" => Bytes::from_static(b":authority"),
            Joining::Nothing | Joining::Request | Joining::Response => name,
        };
        if self.joining.joins(&name)
            && let Some((_, found)) = self.entries.iter_mut().find(|(found, _)| *found == name)
        {
            *found = Bytes::from([&found[..], b",", &value].concat());
            return;
        }
        let entry = (name, value);
        if entry.0.starts_with(b":") {
            let pseudo = self
                .entries
                .iter()
                .take_while(|(name, _)| name.starts_with(b":"));
            let place = pseudo.count();
            self.entries.insert(place, entry);
        } else {
            self.entries.push(entry);
        }
    }

    /// Replaces every value of `name` by one, which goes to the end.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.remove(name);
        self.add(name, value);
    }

    /// Changes the value of `name` where it stands, as Envoy does for names that it keeps in a field of their own; adds it to the end
    /// where it is missing.
    pub(crate) fn set_in_place(&mut self, name: &'static str, value: &[u8]) {
        let value = Bytes::copy_from_slice(value);
        match self.entries.iter_mut().find(|(found, _)| found == name) {
            Some((_, found)) => *found = value,
            None => self.add_entry(Bytes::from_static(name.as_bytes()), value),
        }
    }

    /// Removes every value of `name`; returns whether there was one.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let before = self.entries.len();
        self.entries
            .retain(|(found, _)| !found.eq_ignore_ascii_case(name));
        self.entries.len() < before
    }

    /// The entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.entries
            .iter()
            .map(|(name, value)| (&name[..], &value[..]))
    }

    /// How many entries there are, pseudo-headers counted.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of all names and values.
    pub fn byte_size(&self) -> usize {
        self.entries
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum()
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for HeaderMap {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(entries: I) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in entries {
            map.add(name.as_ref(), value.as_ref());
        }
        map
    }
}

/// `name` in lower case; no copy of the bytes that a table of common names already holds would be worth its price here.
fn lower(name: &[u8]) -> Bytes {
    Bytes::from(name.to_ascii_lowercase())
}

impl Joining {
    /// Whether a second value of `name` is joined to the first. Source: measured on Envoy 1.40; the inline headers of its
    /// `envoy/http/header_map.h`.
    fn joins(self, name: &[u8]) -> bool {
        match self {
            Joining::Nothing => false,
            Joining::Request => {
                name.starts_with(b":") || REQUEST.contains(&name) || BOTH.contains(&name)
            }
            Joining::Response => {
                name.starts_with(b":") || RESPONSE.contains(&name) || BOTH.contains(&name)
            }
        }
    }
}

const BOTH: [&[u8]; 13] = [
    b"cache-control",
    b"connection",
    b"content-encoding",
    b"content-length",
    b"content-type",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
    b"upgrade",
    b"via",
    b"x-envoy-attempt-count",
    b"x-envoy-decorator-operation",
    b"x-request-id",
];

const REQUEST: [&[u8]; 24] = [
    b"accept",
    b"accept-encoding",
    b"access-control-request-headers",
    b"access-control-request-method",
    b"authorization",
    b"expect",
    b"grpc-timeout",
    b"if-match",
    b"if-modified-since",
    b"if-none-match",
    b"origin",
    b"pragma",
    b"referer",
    b"te",
    b"user-agent",
    b"x-client-trace-id",
    b"x-envoy-expected-rq-timeout-ms",
    b"x-envoy-internal",
    b"x-envoy-max-retries",
    b"x-envoy-original-path",
    b"x-envoy-retry-on",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
];

const RESPONSE: [&[u8]; 8] = [
    b"access-control-allow-origin",
    b"date",
    b"etag",
    b"grpc-message",
    b"grpc-status",
    b"location",
    b"server",
    b"vary",
];
