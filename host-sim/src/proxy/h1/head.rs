//! Heads of requests and responses: what Envoy's codec accepts, and the status with which it refuses.

use bytes::{Bytes, BytesMut};

use super::{Framing, Incoming, skip_empty_lines};
use crate::header_map::HeaderMap;
use crate::proxy::settings::Underscores;

/// How large a head may be, and what its names may hold.
#[derive(Clone, Copy, Debug)]
pub(in crate::proxy) struct Limits {
    pub(in crate::proxy) bytes: usize,
    pub(in crate::proxy) fields: usize,
    pub(in crate::proxy) underscores: Underscores,
    /// Whether a target may claim `https`. Envoy lets nobody claim TLS where there is none, at the edge.
    pub(in crate::proxy) https_targets: bool,
}

/// The head of a request.
#[derive(Debug)]
pub(in crate::proxy) struct RequestHead {
    /// With `:authority`, `:path`, `:method` in front, as far as they are known. The scheme is the connection manager's to add.
    pub(in crate::proxy) headers: HeaderMap,
    /// How the body is framed.
    pub(in crate::proxy) framing: Framing,
}

/// The head of a response.
#[derive(Debug)]
pub(in crate::proxy) struct ResponseHead {
    pub(in crate::proxy) status: u16,
    /// With `:status` in front.
    pub(in crate::proxy) headers: HeaderMap,
    pub(in crate::proxy) framing: Framing,
    /// The connection cannot be used again.
    pub(in crate::proxy) closes: bool,
}

/// Why no request was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum RequestFault {
    /// The connection ended between two requests, or inside of one.
    Gone,
    /// It is refused with this status, and the connection is closed.
    Refused(u16),
}

/// Why no response was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum ResponseFault {
    /// The connection ended before it.
    Gone,
    /// It is none.
    Malformed,
}

/// Reads the head of the next request.
pub(in crate::proxy) async fn read_request(
    incoming: &mut Incoming,
    limits: Limits,
) -> Result<RequestHead, RequestFault> {
    loop {
        skip_empty_lines(&mut incoming.buffer);
        // No method begins so, but what is not HTTP at all often does: a TLS handshake for one.
        if incoming.buffer.first().is_some_and(|byte| *byte <= b' ') {
            return Err(RequestFault::Refused(400));
        }
        if let Some(end) = end_of_lines(&incoming.buffer) {
            if end > limits.bytes {
                return Err(RequestFault::Refused(431));
            }
            let head = incoming.buffer.split_to(end).freeze();
            return parse_request(&head, limits).map_err(RequestFault::Refused);
        }
        if incoming.buffer.len() > limits.bytes {
            return Err(RequestFault::Refused(431));
        }
        // A first line that is none need not wait for the rest of the head.
        if let Some(end) = incoming.buffer.iter().position(|byte| *byte == b'\n') {
            request_line(trimmed(&incoming.buffer[..end])).map_err(RequestFault::Refused)?;
        }
        if !incoming.fill().await {
            return Err(RequestFault::Gone);
        }
    }
}

/// Reads the head of the response to a request with `method`; interim ones are skipped, since Envoy passes none on by default.
pub(in crate::proxy) async fn read_response(
    incoming: &mut Incoming,
    method: &[u8],
    upgrade: bool,
) -> Result<ResponseHead, ResponseFault> {
    loop {
        skip_empty_lines(&mut incoming.buffer);
        if let Some(end) = end_of_lines(&incoming.buffer) {
            let head = incoming.buffer.split_to(end).freeze();
            let head = parse_response(&head, method, upgrade).ok_or(ResponseFault::Malformed)?;
            if head.status >= 200 || head.status == 101 {
                return Ok(head);
            }
            continue;
        }
        if incoming.buffer.len() > RESPONSE_HEAD_LIMIT || !may_begin_response(&incoming.buffer) {
            return Err(ResponseFault::Malformed);
        }
        if !incoming.fill().await {
            // Envoy tells a connection that ended within a head from one that ended before it.
            let began = !incoming.buffer.is_empty();
            return Err(if began {
                ResponseFault::Malformed
            } else {
                ResponseFault::Gone
            });
        }
    }
}

fn may_begin_response(buffer: &BytesMut) -> bool {
    let length = buffer.len().min(b"HTTP/1.".len());
    buffer[..length] == b"HTTP/1."[..length]
}

/// Where the lines end, behind the empty one.
pub(super) fn end_of_lines(buffer: &[u8]) -> Option<usize> {
    let mut start = 0;
    while let Some(length) = buffer.get(start..)?.iter().position(|byte| *byte == b'\n') {
        let line = &buffer[start..start + length];
        start += length + 1;
        if line.is_empty() || line == b"\r" {
            return Some(start);
        }
    }
    None
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Method and target of a first line, or the status that refuses it.
fn request_line(line: &[u8]) -> Result<(&[u8], &[u8]), u16> {
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let version = words.next();
    if !METHODS.contains(&method) || target.is_empty() || words.next().is_some() {
        return Err(400);
    }
    match version {
        Some(b"HTTP/1.1") => Ok((method, target)),
        // Envoy's `accept_http_10` is off by default.
        Some(version) if version.starts_with(b"HTTP/") => Err(426),
        None => Err(426),
        Some(_) => Err(400),
    }
}

fn parse_request(head: &Bytes, limits: Limits) -> Result<RequestHead, u16> {
    let end = head.iter().position(|byte| *byte == b'\n').ok_or(400u16)?;
    let (method, target) = request_line(trimmed(&head[..end]))?;
    let mut host: Option<Vec<u8>> = None;
    let mut rest = Vec::new();
    let fields = fields(&head[end + 1..]).ok_or(400u16)?;
    if fields.len() > limits.fields {
        return Err(431);
    }
    for (name, value) in fields {
        if name.contains(&b'_') {
            match limits.underscores {
                Underscores::Allow => {}
                Underscores::DropHeader => continue,
                Underscores::RejectRequest => return Err(400),
            }
        }
        if name.eq_ignore_ascii_case(b"host") {
            host = Some(match host {
                Some(first) => [first.as_slice(), b",", &value].concat(),
                None => value,
            });
        } else {
            rest.push((name, value));
        }
    }
    let framing = framing(&rest)?;
    let target = target_parts(method, target, limits.https_targets)?;
    let authority = target.authority.or(host);
    if authority
        .as_deref()
        .is_some_and(|authority| !is_authority(authority))
    {
        return Err(400);
    }
    let mut headers = HeaderMap::new();
    if let Some(authority) = authority {
        headers.add(b":authority", &authority);
    }
    if let Some(scheme) = target.scheme {
        headers.add(b":scheme", scheme);
    }
    if let Some(path) = target.path {
        headers.add(b":path", &path);
    }
    headers.add(b":method", method);
    for (name, value) in rest {
        headers.add(&name, &value);
    }
    Ok(RequestHead {
        headers,
        framing: framing.unwrap_or(Framing::Empty),
    })
}

/// How a body is framed; `None` where nothing says that there is one.
fn framing(fields: &[(Vec<u8>, Vec<u8>)]) -> Result<Option<Framing>, u16> {
    let values = |wanted: &'static str| {
        let same =
            move |(name, _): &&(Vec<u8>, Vec<u8>)| name.eq_ignore_ascii_case(wanted.as_bytes());
        fields
            .iter()
            .filter(same)
            .map(|(_, value)| value.as_slice())
    };
    let lengths: Vec<&[u8]> = values("content-length").collect();
    let encodings: Vec<&[u8]> = values("transfer-encoding").collect();
    match (lengths.as_slice(), encodings.as_slice()) {
        ([], []) => Ok(None),
        ([length], []) if !length.is_empty() && length.iter().all(u8::is_ascii_digit) => {
            let length = std::str::from_utf8(length)
                .ok()
                .and_then(|text| text.parse().ok());
            length
                .map(|length| Some(Framing::Length(length)))
                .ok_or(400)
        }
        ([], [encoding]) if encoding.eq_ignore_ascii_case(b"chunked") => Ok(Some(Framing::Chunked)),
        ([], _) => Err(501),
        _ => Err(400),
    }
}

struct Target {
    authority: Option<Vec<u8>>,
    scheme: Option<&'static [u8]>,
    path: Option<Vec<u8>>,
}

/// What a target says. Source: `BalsaParser`'s `isUrlValid` and `ServerConnectionImpl::handlePath`.
fn target_parts(method: &[u8], target: &[u8], https: bool) -> Result<Target, u16> {
    if !target.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(400);
    }
    if method == b"CONNECT" {
        let named = is_authority(target) && target.contains(&b':');
        return if named {
            Ok(Target {
                authority: Some(target.to_vec()),
                scheme: None,
                path: None,
            })
        } else {
            Err(400)
        };
    }
    if target.starts_with(b"/") || (target == b"*" && method == b"OPTIONS") {
        return Ok(Target {
            authority: None,
            scheme: None,
            path: Some(target.to_vec()),
        });
    }
    let lower = target.to_ascii_lowercase();
    let (rest, scheme) = if lower.starts_with(b"http://") {
        (&target[b"http://".len()..], b"http".as_slice())
    } else if lower.starts_with(b"https://") {
        (&target[b"https://".len()..], b"https".as_slice())
    } else {
        return Err(400);
    };
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
        .unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = authority
        .rsplit(|byte| *byte == b'@')
        .next()
        .unwrap_or_default();
    if authority.is_empty() {
        return Err(400);
    }
    // `http1 scheme mismatch`
    if scheme == b"https" && !https {
        return Err(403);
    }
    let path = if path.is_empty() {
        b"/".to_vec()
    } else {
        path.to_vec()
    };
    Ok(Target {
        authority: Some(authority.to_vec()),
        scheme: Some(scheme),
        path: Some(path),
    })
}

/// Source: `HeaderUtility::authorityIsValid`.
pub(in crate::proxy) fn is_authority(authority: &[u8]) -> bool {
    authority
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:@[]".contains(byte))
}

fn parse_response(head: &Bytes, method: &[u8], upgrade: bool) -> Option<ResponseHead> {
    let end = head.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(trimmed(&head[..end])).ok()?;
    let (version, rest) = line.split_once(' ')?;
    let old = match version {
        "HTTP/1.1" => false,
        "HTTP/1.0" => true,
        _ => return None,
    };
    let status = rest.split(' ').next()?;
    let status: u16 = (status.len() == 3).then(|| status.parse().ok()).flatten()?;
    if !(100..=999).contains(&status) {
        return None;
    }
    let fields = fields(&head[end + 1..])?;
    let framing = framing(&fields).ok()?;
    // Envoy takes an answer that cannot have a body and announces one for no answer.
    let announces_body = !matches!(framing, None | Some(Framing::Empty | Framing::Length(0)));
    if status == 204 && announces_body {
        return None;
    }
    let mut headers = HeaderMap::new().with(":status", status.to_string());
    for (name, value) in fields {
        headers.add(&name, &value);
    }
    let says = |word: &[u8]| {
        headers
            .all("connection")
            .any(|value| has_token(value, word))
    };
    let connection_ends = says(b"close") || (old && !says(b"keep-alive"));
    let framing = if status == 101 && upgrade || (method == b"CONNECT" && status < 300) {
        Framing::UntilClose
    } else if method == b"HEAD" || status < 200 || status == 204 || status == 304 {
        Framing::Empty
    } else {
        framing.unwrap_or(Framing::UntilClose)
    };
    let closes = connection_ends || framing == Framing::UntilClose;
    Some(ResponseHead {
        status,
        headers,
        framing,
        closes,
    })
}

/// Names and values of the lines up to the empty one; `None` where one is no header.
pub(super) fn fields(lines: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let line = trimmed(line);
        if line.is_empty() {
            break;
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            // A folded line goes on with the value before it.
            let (_, value) = fields.last_mut()?;
            value.push(b' ');
            value.extend(field_value(line)?);
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = &line[..colon];
        if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
            return None;
        }
        fields.push((name.to_vec(), field_value(&line[colon + 1..])?));
    }
    Some(fields)
}

/// A value without white space around it. A lone carriage return within it is dropped, as Envoy's parser does.
fn field_value(value: &[u8]) -> Option<Vec<u8>> {
    let value: Vec<u8> = value
        .iter()
        .copied()
        .filter(|byte| *byte != b'\r')
        .collect();
    let valid = value
        .iter()
        .all(|byte| matches!(byte, b'\t' | 0x20..=0x7e | 0x80..));
    valid.then(|| value.trim_ascii().to_vec())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a comma-separated list holds `word`.
pub(in crate::proxy) fn has_token(list: &[u8], word: &[u8]) -> bool {
    list.split(|byte| *byte == b',')
        .any(|item| item.trim_ascii().eq_ignore_ascii_case(word))
}

/// Envoy's default for responses.
const RESPONSE_HEAD_LIMIT: usize = 60 * 1024;

/// Source: `kValidMethods` of Envoy's `balsa_parser.cc`.
const METHODS: [&[u8]; 35] = [
    b"ACL",
    b"BIND",
    b"CHECKOUT",
    b"CONNECT",
    b"COPY",
    b"DELETE",
    b"GET",
    b"HEAD",
    b"LINK",
    b"LOCK",
    b"MERGE",
    b"MKACTIVITY",
    b"MKCALENDAR",
    b"MKCOL",
    b"MOVE",
    b"MSEARCH",
    b"NOTIFY",
    b"OPTIONS",
    b"PATCH",
    b"POST",
    b"PROPFIND",
    b"PROPPATCH",
    b"PURGE",
    b"PUT",
    b"QUERY",
    b"REBIND",
    b"REPORT",
    b"SEARCH",
    b"SOURCE",
    b"SUBSCRIBE",
    b"TRACE",
    b"UNBIND",
    b"UNLINK",
    b"UNLOCK",
    b"UNSUBSCRIBE",
];

#[cfg(test)]
mod tests;
