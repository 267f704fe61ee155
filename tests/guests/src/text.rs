//! Bytes as text: what a script writes and what a transcript shows.

/// Shows bytes in quotes, whatever they hold; long ones are cut with their size.
pub fn show(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(LONGEST)];
    let mut text = format!("\"{}\"", shown.escape_ascii());
    if shown.len() < bytes.len() {
        text.push_str(&format!("...({} bytes)", bytes.len()));
    }
    text
}

/// Shows what the host handed over.
pub fn show_data(data: &Option<Vec<u8>>) -> String {
    match data {
        Some(bytes) => show(bytes),
        None => "null".to_owned(),
    }
}

/// A word of a script as bytes: `""` is empty, `%41` one byte, `%*1000` makes the rest 1,000 times.
pub fn bytes(word: &str) -> Vec<u8> {
    if word == "\"\"" {
        return Vec::new();
    }
    if let Some((count, unit)) = word
        .strip_prefix("%*")
        .and_then(|rest| rest.split_once('*'))
    {
        return bytes(unit).repeat(count.parse().unwrap_or(0));
    }
    let source = word.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let code = source.get(at + 1..at + 3).filter(|_| source[at] == b'%');
        let code = code.and_then(|code| str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                found.push(byte);
                at += 3;
            }
            None => {
                found.push(source[at]);
                at += 1;
            }
        }
    }
    found
}

/// Header pairs in the form of the ABI: count, sizes, then names and values that each end with NUL.
pub fn pairs_to_bytes(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut all = (pairs.len() as u32).to_le_bytes().to_vec();
    for (name, value) in pairs {
        all.extend((name.len() as u32).to_le_bytes());
        all.extend((value.len() as u32).to_le_bytes());
    }
    for (name, value) in pairs {
        all.extend(name);
        all.push(0);
        all.extend(value);
        all.push(0);
    }
    all
}

/// The same the other way; `None` when the host wrote something else.
pub fn pairs_from_bytes(all: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let word = |at: usize| {
        let bytes = all.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let count = word(0)?;
    let mut at = 4 + count * 8;
    let mut pairs = Vec::new();
    for index in 0..count {
        let (name, value) = (word(4 + index * 8)?, word(8 + index * 8)?);
        let name_end = at + name;
        let value_end = name_end + 1 + value;
        pairs.push((
            all.get(at..name_end)?.to_vec(),
            all.get(name_end + 1..value_end)?.to_vec(),
        ));
        at = value_end + 1;
    }
    (at == all.len()).then_some(pairs)
}

/// A map as text; values that differ from run to run are hidden.
pub fn show_pairs(data: &Option<Vec<u8>>) -> String {
    let Some(all) = data else {
        return "null".to_owned();
    };
    if all.is_empty() {
        return "empty".to_owned();
    }
    let Some(pairs) = pairs_from_bytes(all) else {
        return format!("unreadable {}", show(all));
    };
    let mut text = format!("{} pairs", pairs.len());
    for (name, value) in pairs {
        let hidden = VOLATILE.contains(&name.escape_ascii().to_string().as_str());
        let value = if hidden { "*".to_owned() } else { show(&value) };
        text.push_str(&format!(" {}={value}", name.escape_ascii()));
    }
    text
}

/// Headers whose value no two runs share.
const VOLATILE: [&str; 5] = [
    "date",
    "x-request-id",
    "x-envoy-upstream-service-time",
    "x-envoy-original-dst-host",
    "x-volatile",
];

/// How many bytes of a value a transcript shows.
const LONGEST: usize = 160;
