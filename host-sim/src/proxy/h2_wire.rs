//! Between Envoy's header maps and those of the HTTP/2 library, and bodies that wait for the peer's window.

use std::future::poll_fn;

use bytes::Bytes;
use h2::SendStream;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};

use crate::header_map::HeaderMap;

/// What the filter sees of a request. The library does not keep the order of pseudo-headers; this is the one that most clients send.
pub(super) fn request_headers(head: &http::request::Parts) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.add(b":method", head.method.as_str().as_bytes());
    let connect = head.method == Method::CONNECT;
    if let Some(scheme) = head.uri.scheme_str().filter(|_| !connect) {
        headers.add(b":scheme", scheme.as_bytes());
    }
    if let Some(authority) = head.uri.authority() {
        headers.add(b":authority", authority.as_str().as_bytes());
    }
    if let Some(path) = head.uri.path_and_query().filter(|_| !connect) {
        headers.add(b":path", path.as_str().as_bytes());
    }
    add_fields(&mut headers, &head.headers);
    if !headers.contains(":authority")
        && let Some(host) = headers.first("host").map(<[u8]>::to_vec)
    {
        headers.add(b":authority", &host);
    }
    headers.remove(b"host");
    // A client may send its cookies one by one; Envoy makes one field of them, behind the others.
    let cookies: Vec<&[u8]> = headers.all("cookie").collect();
    if !cookies.is_empty() {
        let joined = cookies.join(&b"; "[..]);
        headers.set(b"cookie", &joined);
    }
    headers
}

/// Adds all fields, repeated ones in order.
pub(super) fn add_fields(headers: &mut HeaderMap, fields: &http::HeaderMap) {
    for (name, value) in fields {
        headers.add(name.as_str().as_bytes(), value.as_bytes());
    }
}

/// The fields without pseudo-headers. What no HTTP/2 peer may be sent is left out.
pub(super) fn fields(headers: &HeaderMap) -> http::HeaderMap {
    let mut fields = http::HeaderMap::new();
    for (name, value) in headers.iter() {
        let hop = matches!(
            name,
            b"connection" | b"upgrade" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
        );
        if name.starts_with(b":") || hop {
            continue;
        }
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            fields.append(name, value);
        }
    }
    fields
}

/// A request for an upstream; `None` where a pseudo-header is none.
pub(super) fn request(headers: &HeaderMap) -> Option<Request<()>> {
    let method = Method::from_bytes(headers.first(":method")?).ok()?;
    let scheme = headers.text(":scheme").unwrap_or("http");
    let authority = headers.text(":authority")?;
    let path = headers.text(":path").unwrap_or("/");
    let uri = Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(path)
        .build()
        .ok()?;
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.version_mut() = http::Version::HTTP_2;
    *request.headers_mut() = fields(headers);
    Some(request)
}

/// A response for a client.
pub(super) fn response(headers: &HeaderMap) -> Response<()> {
    let status = headers
        .first(":status")
        .and_then(|status| StatusCode::from_bytes(status).ok());
    let mut response = Response::new(());
    *response.status_mut() = status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    *response.headers_mut() = fields(headers);
    response
}

/// Sends bytes as the peer's window allows; `None` where the stream is over.
pub(super) async fn send_data(
    stream: &mut SendStream<Bytes>,
    mut data: Bytes,
    end_stream: bool,
) -> Option<()> {
    if data.is_empty() {
        return if end_stream {
            stream.send_data(data, true).ok()
        } else {
            Some(())
        };
    }
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        while stream.capacity() == 0 {
            poll_fn(|context| stream.poll_capacity(context))
                .await?
                .ok()?;
        }
        let part = data.split_to(stream.capacity().min(data.len()));
        stream.send_data(part, end_stream && data.is_empty()).ok()?;
    }
    Some(())
}

/// How much the library lets small DATA frames cost beyond their bytes. By itself it ends a connection with some hundreds of them
/// under way; Envoy counts only empty ones. The flow control window still bounds how many there can be.
pub(super) const DATA_FRAME_BUDGET: usize = 1 << 30;
