//! Short names of the ABI's numbers, as scripts write them.

/// Header maps by number.
pub const MAPS: [&str; 8] = [
    "reqh", "reqt", "resh", "rest", "grim", "grtm", "callh", "callt",
];

/// Buffers by number.
pub const BUFFERS: [&str; 9] = [
    "reqb", "resb", "down", "up", "callb", "grpcb", "vmconf", "conf", "calldata",
];

/// Streams by number, for `continue` and `close`.
pub const STREAMS: [&str; 4] = ["request", "response", "downstream", "upstream"];

/// Metrics by number.
pub const METRICS: [&str; 3] = ["counter", "gauge", "histogram"];

/// The number of `word` in `names`; a plain number stands for itself, valid or not.
pub fn number(names: &[&str], word: &str) -> u32 {
    let known = names.iter().position(|name| *name == word);
    known.map_or_else(|| word.parse().unwrap_or(u32::MAX), |index| index as u32)
}
