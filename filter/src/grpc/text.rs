//! The text of one message: what a person reads, and what binds the message's bytes. No two messages have one text.

use std::fmt;

use sha2::{Digest, Sha256};

use super::descriptors::MessageDescriptor;
use super::output::{Output, is_doubtful};
use super::{field_tree, protojson};

/// A message as text.
///
/// Where the text alone does not say which bytes the message has, its last line is `sha256:` and their digest, so that
/// different messages never share a text.
#[derive(Clone, PartialEq, Eq)]
pub struct MessageText {
    /// The text; never empty.
    pub text: String,
    /// Whether the bytes follow from the text alone. If not, the last line is the digest.
    pub is_exact: bool,
}

/// Shows sizes only: a message may hold anything that a client sent.
impl fmt::Debug for MessageText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MessageText")
            .field("text_bytes", &self.text.len())
            .field("is_exact", &self.is_exact)
            .finish()
    }
}

/// A message whose text is longer than the caller takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the text of a gRPC message is longer than the {0} bytes allowed; hint: send smaller messages"
)]
pub struct TextTooLarge(pub usize);

/// The text of a protobuf message: canonical protojson where its type is known, else its fields by number. A message that
/// is not of its type, or that has no protojson, is shown by its fields as well, and its bytes are bound by the digest.
///
/// # Errors
///
/// When the text is longer than so many bytes. Memory is bounded by those and the message.
pub fn message_text(
    message: &[u8],
    descriptor: Option<MessageDescriptor<'_>>,
    max_text_bytes: usize,
) -> Result<MessageText, TextTooLarge> {
    if let Some(descriptor) = descriptor
        && let Ok((out, is_exact)) = protojson::write(message, descriptor, max_text_bytes)
    {
        return finish(out, is_exact, message);
    }
    let mut out = Output::new(max_text_bytes);
    let is_exact = field_tree::write(message, &mut out) && descriptor.is_none();
    finish(out, is_exact, message)
}

/// The text of a message in JSON: the bytes as they are, each character escaped that does not plainly show; `hex:` and
/// the bytes' digits where they are no UTF-8; `empty message` where there are none. Whether it is JSON is for its server
/// to say.
///
/// # Errors
///
/// When the text is longer than so many bytes.
pub fn json_text(message: &[u8], max_text_bytes: usize) -> Result<MessageText, TextTooLarge> {
    let mut out = Output::new(max_text_bytes);
    let Ok(text) = std::str::from_utf8(message) else {
        out.push("hex:");
        out.hex(message);
        return finish(out, false, message);
    };
    if text.is_empty() {
        out.push(field_tree::EMPTY);
        return finish(out, true, message);
    }
    // A text that reads as that of another message does says nothing of its own bytes.
    let mut is_exact = text != field_tree::EMPTY && !ends_in_digest(text);
    let is_shown = |letter| !is_doubtful(letter) || matches!(letter, '\n' | '\t');
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if out.is_full() {
            break;
        }
        let ends_line = letter == '\r' && letters.peek() == Some(&'\n');
        if is_shown(letter) || ends_line {
            out.letter(letter);
        } else {
            out.escaped(letter);
            is_exact = false;
        }
    }
    finish(out, is_exact, message)
}

const DIGEST: &str = "sha256:";

fn finish(mut out: Output, is_exact: bool, message: &[u8]) -> Result<MessageText, TextTooLarge> {
    if !is_exact {
        out.push("\n");
        out.push(DIGEST);
        out.hex(&Sha256::digest(message));
    }
    Ok(MessageText {
        text: out.finish()?,
        is_exact,
    })
}

fn ends_in_digest(text: &str) -> bool {
    text.rsplit('\n')
        .next()
        .is_some_and(|last| last.starts_with(DIGEST))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(message: &[u8]) -> (String, bool) {
        let text = json_text(message, 1_000).unwrap();
        (text.text, text.is_exact)
    }

    fn with_digest(text: &str, message: &[u8]) -> (String, bool) {
        let mut out = Output::new(1_000);
        out.hex(&Sha256::digest(message));
        (format!("{text}\nsha256:{}", out.finish().unwrap()), false)
    }

    #[test]
    fn ok_json_as_it_is() {
        assert_eq!(json(b""), ("empty message".to_owned(), true));
        for message in [
            "{}",
            "{\r\n\t\"a\": \"\u{5d0}\u{e4}\u{1f600}\"\n}\n",
            "no json",
            "sha256:\n",
        ] {
            assert_eq!(json(message.as_bytes()), (message.to_owned(), true));
        }
    }

    #[test]
    fn what_does_not_show_in_json_is_escaped_and_the_bytes_are_bound() {
        for (message, text) in [
            ("{\"a\":\"\u{202e}\"}", "{\"a\":\"\\u202e\"}"),
            ("{\"a\":\"\u{e0041}\"}", "{\"a\":\"\\udb40\\udc41\"}"),
            ("{}\r", "{}\\r"),
            ("{}\0", "{}\\u0000"),
            ("sha256:00", "sha256:00"),
            ("empty message", "empty message"),
        ] {
            let expected = with_digest(text, message.as_bytes());

            assert_eq!(json(message.as_bytes()), expected);
        }
        assert_eq!(json(b"\xff{}"), with_digest("hex:ff7b7d", b"\xff{}"));
    }

    #[test]
    fn a_text_stops_at_its_bound() {
        assert_eq!(
            message_text(&[0xff; 9], None, 22).unwrap().text,
            "hex:ffffffffffffffffff"
        );
        assert_eq!(message_text(&[0xff; 9], None, 21), Err(TextTooLarge(21)));
        assert_eq!(
            message_text(&[0x0b; 1 << 20], None, 99),
            Err(TextTooLarge(99))
        );
        assert_eq!(json_text(b"{}", 1), Err(TextTooLarge(1)));
        assert_eq!(
            json_text(b"\0", 70),
            Err(TextTooLarge(70)),
            "the digest counts"
        );
        assert_eq!(
            TextTooLarge(9).to_string(),
            "the text of a gRPC message is longer than the 9 bytes allowed; hint: send smaller messages"
        );
    }

    #[test]
    fn a_text_never_prints() {
        let text = message_text(b"\x0a\x06secret", None, 99).unwrap();

        assert_eq!(
            format!("{text:?}"),
            "MessageText { text_bytes: 11, is_exact: true }"
        );
    }

    proptest! {
        #[test]
        fn different_json_has_different_texts(
            left in "[{}\"\\\\ru0\r\n\u{202e}]{0,6}(\nsha256:[0-9a-f]{0,3})?",
            right in "[{}\"\\\\ru0\r\n\u{202e}]{0,6}(\nsha256:[0-9a-f]{0,3})?",
        ) {
            let same = json(left.as_bytes()) == json(right.as_bytes());
            prop_assert_eq!(same, left == right);
            // Another message that spells out the first one's text has a text of its own.
            let forged = json(left.as_bytes()).0;
            if forged != left {
                prop_assert_ne!(json(forged.as_bytes()).0, forged);
            }
        }
    }
}
