//! Headers and trailers as Envoy keeps them: lower-case names, repeated values, pseudo-headers in front, bytes and not text.

use bytes::Bytes;

/// A list of headers or trailers.
///
/// Names are stored in lower case. A value may hold any byte, as a client may send any. Names that Envoy keeps in a field of
/// their own (`content-type`, `:path`, ...) cannot stand twice: adding a second value joins the two with a comma.
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
}

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

    /// Adds a value, as Envoy's `addCopy` does: see the type's own text for names that cannot repeat.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        let name = lower(name);
        if let Some(separator) = separator(&name)
            && let Some((_, found)) = self.entries.iter_mut().find(|(found, _)| *found == name)
        {
            let joined = [&found[..], separator, value].concat();
            *found = Bytes::from(joined);
            return;
        }
        let entry = (name, Bytes::copy_from_slice(value));
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

/// What stands between two values of a name that cannot repeat; `None` for a name that can.
/// Source: the inline headers of Envoy's `envoy/http/header_map.h`.
fn separator(name: &[u8]) -> Option<&'static [u8]> {
    INLINE.contains(&name).then_some(b",".as_slice())
}

const INLINE: [&[u8]; 16] = [
    b":authority",
    b":method",
    b":path",
    b":protocol",
    b":scheme",
    b":status",
    b"connection",
    b"content-length",
    b"content-type",
    b"expect",
    b"grpc-message",
    b"grpc-status",
    b"host",
    b"te",
    b"transfer-encoding",
    b"user-agent",
];
