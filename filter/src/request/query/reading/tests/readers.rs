//! Small models of how servers read a query: what each makes of names, not of values. Written after their sources.

use crate::request::path::decode_leniently;

/// Where a parameter goes: the name and the names or numbers within it; and its value.
type Entry = (Vec<String>, Vec<u8>);

/// A reader; `None` where it refuses the query.
type Parse = fn(&str) -> Option<Vec<Entry>>;

pub(super) const ALL: [(&str, Parse); 5] = [
    (PLAIN, plain),
    ("qs", qs),
    ("Rack 1", old_rack),
    ("Rack 3", new_rack),
    ("PHP", php),
];

/// The reader that looks for a name as it is written.
pub(super) const PLAIN: &str = "plain";

/// What a server's code finds under a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// A list, a group, or several.
    Other,
    Value(Vec<u8>),
}

/// `None` where the reader refuses the query.
pub(super) fn found(entries: Option<Vec<Entry>>, path: &[&str]) -> Option<Found> {
    let entries = entries?;
    let is_at = |entry: &Entry| {
        entry.0.len() >= path.len() && entry.0.iter().zip(path).all(|(left, right)| left == right)
    };
    // A value where the path wants a group: it replaces the group, or is replaced, or the reader gives up.
    let replaces = |entry: &Entry| {
        entry.0.len() < path.len() && entry.0.iter().zip(path).all(|(left, right)| left == right)
    };
    if entries.iter().any(replaces) {
        return Some(Found::Nothing);
    }
    let mut at: Vec<&Entry> = entries.iter().filter(|entry| is_at(entry)).collect();
    Some(match (at.pop(), at.len()) {
        (None, _) => Found::Nothing,
        (Some((names, value)), 0) if names.len() == path.len() => Found::Value(value.clone()),
        (Some(_), _) => Found::Other,
    })
}

fn decoded(text: &str) -> Vec<u8> {
    decode_leniently(text.replace('+', " ").as_bytes())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .filter(|piece| !piece.is_empty())
        .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
}

/// Go, Java, Python: a name is a name, brackets and all.
fn plain(query: &str) -> Option<Vec<Entry>> {
    let entry = |(name, value)| (vec![text(&decoded(name))], decoded(value));
    Some(pairs(query).map(entry).collect())
}

/// qs 6, the parser of Express: `parseValues` and `parseKeys`.
fn qs(query: &str) -> Option<Vec<Entry>> {
    // Later versions undo the escapes of brackets first.
    let query = ["%5B", "%5b"]
        .iter()
        .fold(query.to_owned(), |query, escape| query.replace(escape, "["));
    let query = ["%5D", "%5d"]
        .iter()
        .fold(query, |query, escape| query.replace(escape, "]"));
    let entry = |piece: &str| {
        let at = piece
            .find("]=")
            .map(|at| at + 1)
            .or_else(|| piece.find('='));
        let (name, value) = at.map_or((piece, ""), |at| (&piece[..at], &piece[at + 1..]));
        let name = text(&decoded(name));
        let mut path = Vec::new();
        let mut rest = name.as_str();
        let mut parent = None;
        while let Some((open, close)) = segment(rest) {
            parent.get_or_insert(&rest[..open]);
            path.push(rest[open + 1..close].to_owned());
            rest = &rest[close + 1..];
        }
        let parent = parent.unwrap_or(&name);
        if !parent.is_empty() {
            path.insert(0, parent.to_owned());
        }
        (path, decoded(value))
    };
    Some(
        query
            .split('&')
            .filter(|piece| !piece.is_empty())
            .map(entry)
            .filter(|(path, _)| !path.is_empty())
            .collect(),
    )
}

/// The first `[...]` without brackets in it.
fn segment(text: &str) -> Option<(usize, usize)> {
    text.match_indices('[').find_map(|(open, _)| {
        let close = open + 1 + text[open + 1..].find(['[', ']'])?;
        text[close..].starts_with(']').then_some((open, close))
    })
}

/// Rack 1 and 2.0, `normalize_params`: `\A[\[\]]*([^\[\]]+)\]*`.
fn old_rack(query: &str) -> Option<Vec<Entry>> {
    let entry = |(name, value): (&str, &str)| {
        let name = text(&decoded(name.trim_start_matches(' ')));
        let mut path = Vec::new();
        let mut rest = name.as_str();
        loop {
            let start = rest.trim_start_matches(['[', ']']);
            let end = start.find(['[', ']']).unwrap_or(start.len());
            if end == 0 {
                break;
            }
            path.push(start[..end].to_owned());
            rest = start[end..].trim_start_matches(']');
            match rest {
                "" => break,
                "[" => {
                    // The whole rest is the name then.
                    path.pop();
                    path.push(format!("{}[", &start[..end]));
                    break;
                }
                "[]" => {
                    path.push(String::new());
                    break;
                }
                _ => {}
            }
        }
        (path, decoded(value))
    };
    Some(
        query
            .split(['&', ';'])
            .map(|piece| piece.trim_start_matches(' '))
            .filter(|piece| !piece.is_empty())
            .map(|piece| entry(piece.split_once('=').unwrap_or((piece, ""))))
            .filter(|(path, _)| !path.is_empty())
            .collect(),
    )
}

/// Rack 2.2.4 and later, `_normalize_params`.
fn new_rack(query: &str) -> Option<Vec<Entry>> {
    let entry = |(name, value): (&str, &str)| {
        let name = text(&decoded(name));
        let mut path = Vec::new();
        let mut rest = name.as_str();
        while !rest.is_empty() || path.is_empty() {
            let is_first = path.is_empty();
            let opened = rest.get(1..).and_then(|behind| behind.find('['));
            let closed = rest.get(1..).and_then(|behind| behind.find(']'));
            match (opened, closed) {
                (Some(at), _) if is_first => {
                    path.push(rest[..at + 1].to_owned());
                    rest = &rest[at + 1..];
                }
                _ if is_first => {
                    path.push(rest.to_owned());
                    break;
                }
                _ if rest == "[" || rest == "[]" => {
                    path.push(String::new());
                    break;
                }
                (_, Some(at)) if rest.starts_with('[') => {
                    path.push(rest[1..at + 1].to_owned());
                    rest = &rest[at + 2..];
                }
                _ => {
                    path.push(rest.to_owned());
                    break;
                }
            }
        }
        (path, decoded(value))
    };
    Some(
        pairs(query)
            .map(entry)
            .filter(|(path, _)| path.first().is_some_and(|name| !name.is_empty()))
            .collect(),
    )
}

/// PHP, `php_register_variable_ex`.
fn php(query: &str) -> Option<Vec<Entry>> {
    let entry = |(name, value): (&str, &str)| {
        let name = decoded(name);
        let name = text(name.split(|byte| *byte == 0).next().unwrap_or_default());
        let name = name.trim_start_matches(' ');
        let base_end = name.find('[').unwrap_or(name.len());
        let base = name[..base_end].replace([' ', '.'], "_");
        if base.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let mut path = vec![base];
        let mut rest = &name[base_end..];
        while let Some(inner) = rest.strip_prefix('[') {
            match inner.find(']') {
                Some(close) => {
                    path.push(inner[..close].trim_start_matches(' ').to_owned());
                    rest = &inner[close + 1..];
                }
                None if path.len() == 1 => {
                    let all = name[base_end..].replace(['[', ' ', '.'], "_");
                    path = vec![format!("{}{all}", path.concat())];
                    break;
                }
                None => break,
            }
        }
        (path, decoded(value))
    };
    Some(
        pairs(query)
            .map(entry)
            .filter(|(path, _)| !path.is_empty())
            .collect(),
    )
}
