//! What everybody saw of one exchange, as lines that two hosts can be compared by. What may differ between any two runs is made
//! equal here and nowhere else.

use std::net::SocketAddr;

use hoop_tests::client::Answer;
use hoop_tests::http1::Message;

/// What one host made of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Status of the client's last answer; 0 when there was none.
    pub(super) status: u16,
    /// One fact each, under headings.
    pub(super) lines: Vec<String>,
}

impl Outcome {
    /// Notes a fact that is none of the messages.
    pub(super) fn note(&mut self, fact: impl Into<String>) {
        self.lines.push(fact.into());
    }

    /// Notes an answer that the client read; `start` is its first line, or the status on HTTP/2.
    pub(super) fn answer(&mut self, start: &[u8], answer: &Answer) {
        self.status = answer.status;
        self.note(format!("client got {}", start.escape_ascii()));
        self.fields("", &answer.headers, None);
        self.body(&answer.body);
        self.fields("trailer ", &answer.trailers, None);
    }

    /// Notes a message that `who` got over HTTP/1.1. `own_address` is where the host had to send it.
    pub(super) fn message(&mut self, who: &str, message: &Message, own_address: SocketAddr) {
        self.note(format!("{who} got {}", message.start.escape_ascii()));
        self.fields("", &message.headers, Some(own_address));
        self.body(&message.body);
        self.fields("trailer ", &message.trailers, Some(own_address));
    }

    fn fields(
        &mut self,
        kind: &str,
        fields: &[(String, Vec<u8>)],
        own_address: Option<SocketAddr>,
    ) {
        for (name, value) in fields {
            let value = value.escape_ascii().to_string();
            let value = alike(name, &value, own_address);
            self.note(format!("    {kind}{name}: {}", shortened(&value)));
        }
    }

    fn body(&mut self, body: &[u8]) {
        if !body.is_empty() {
            let text = without_client_port(&body.escape_ascii().to_string());
            self.note(format!("    body {} {}", body.len(), shortened(&text)));
        }
    }
}

/// `value` of the field `name` without what differs from run to run.
fn alike(name: &str, value: &str, own_address: Option<SocketAddr>) -> String {
    let name = name.to_ascii_lowercase();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let replaced = match name.as_str() {
        "date" if value.ends_with(" GMT") => "<now>",
        "x-envoy-upstream-service-time" if is_number => "<ms>",
        "x-request-id" if is_uuid(value) => "<uuid>",
        // Ours, that is: each host has a plane of its own.
        "host" if own_address.is_some_and(|address| value == address.to_string()) => "<own>",
        _ => value,
    };
    replaced.to_owned()
}

/// What is filed names the client's address; its port is chance.
fn without_client_port(text: &str) -> String {
    let Some((before, behind)) = text.split_once(CLIENT_ADDRESS) else {
        return text.to_owned();
    };
    let rest = behind.trim_start_matches(|letter: char| letter.is_ascii_digit());
    format!("{before}{CLIENT_ADDRESS}<port>{rest}")
}

const CLIENT_ADDRESS: &str = r#"\"peer_addr\":\"127.0.0.1:"#;

fn is_uuid(value: &str) -> bool {
    let groups: Vec<usize> = value.split('-').map(str::len).collect();
    let hexadecimal = |byte: u8| byte == b'-' || byte.is_ascii_hexdigit();
    groups == [8, 4, 4, 4, 12] && value.bytes().all(hexadecimal)
}

/// Long texts by their beginning and a sum of all their bytes.
fn shortened(text: &str) -> String {
    let Some(start) = text.get(..SHOWN_BYTES) else {
        return text.to_owned();
    };
    let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{start}… ({} bytes, sum {sum:016x})", text.len())
}

const SHOWN_BYTES: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_chance_is_made_alike_and_nothing_else() {
        let own = SocketAddr::from(([127, 0, 0, 1], 8009));
        for (name, value, shown) in [
            ("Date", "Mon, 30 Nov 2026 09:00:00 GMT", "<now>"),
            ("date", "never", "never"),
            ("x-envoy-upstream-service-time", "12", "<ms>"),
            ("x-envoy-upstream-service-time", "", ""),
            (
                "x-request-id",
                "0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1",
                "<uuid>",
            ),
            ("x-request-id", "of-the-client", "of-the-client"),
            ("host", "127.0.0.1:8009", "<own>"),
            ("host", "billing.example", "billing.example"),
            ("x-other", "127.0.0.1:8009", "127.0.0.1:8009"),
        ] {
            assert_eq!(alike(name, value, Some(own)), shown, "{name}: {value}");
        }
    }

    #[test]
    fn the_clients_port_is_made_alike() {
        let filed = |port| format!(r#"{{\"peer_addr\":\"127.0.0.1:{port}\",\"x\":1}}"#);

        assert_eq!(
            without_client_port(&filed("40000")),
            without_client_port(&filed("60999"))
        );
        assert_eq!(without_client_port("1:2"), "1:2");
    }

    #[test]
    fn a_long_text_is_told_by_all_of_its_bytes() {
        let text = "a".repeat(SHOWN_BYTES);
        assert_ne!(
            shortened(&format!("{text}b")),
            shortened(&format!("{text}c"))
        );
    }
}
