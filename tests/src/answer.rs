//! What the gate's answers have to look like (contract 3.5, 3.6 and 4), asserted whole so that no case forgets a field.

use crate::client::Answer;

/// Asserts a refusal in return mode with status PENDING and gives the approval's id.
pub fn pending(answer: &Answer) -> String {
    let id = review(
        answer,
        Some("PENDING"),
        "waiting for approval; resend the identical statement once it is approved",
    );
    assert_eq!(
        answer.header("retry-after").as_deref(),
        Some("5"),
        "{answer}"
    );
    id
}

/// [`pending`] where agents have the approval tools, one of which the text names.
pub fn pending_with_tools(answer: &Answer) -> String {
    let id = named(answer, Some("PENDING"));
    assert_eq!(
        answer.header("retry-after").as_deref(),
        Some("5"),
        "{answer}"
    );
    assert_eq!(answer.text(), names_the_tool(&id) + "\n", "{answer}");
    id
}

/// The text of such a refusal.
pub fn names_the_tool(id: &str) -> String {
    format!(
        "approval {id}: waiting for approval; call the MCP tool approval_wait with the approval id, then resend the identical statement once it is approved ({MESSAGE})"
    )
}

/// Asserts a refusal that names an approval which a new send cannot wait for, and gives its id.
pub fn settled(answer: &Answer, status: &str, reason: &str) -> String {
    let id = review(answer, Some(status), reason);
    assert_eq!(answer.header("retry-after"), None, "{answer}");
    id
}

/// Asserts a refusal because what became of an approval could not be asked: an id and no status. Gives the id.
pub fn not_checked(answer: &Answer) -> String {
    let id = review(answer, None, "the approval request could not be checked");
    assert_eq!(answer.header("retry-after"), None, "{answer}");
    id
}

/// Asserts a refusal because nobody decided in `time`, as Go writes it, in which the request was held. Gives the id.
pub fn hold_over(answer: &Answer, time: &str) -> String {
    let reason = format!(
        "still waiting for approval after {time}; run the statement again once it is approved"
    );
    settled(answer, "PENDING", &reason)
}

/// Asserts a refusal that names no approval, with this exact text before the line feed.
pub fn policy(answer: &Answer, text: &str) {
    policy_with_status(answer, 403);
    assert_eq!(answer.text(), format!("{text}\n"), "{answer}");
}

/// Asserts that filing failed: refused, and nothing said about why.
pub fn not_filed(answer: &Answer) {
    policy(
        answer,
        &format!("{MESSAGE}: the approval request could not be filed"),
    );
}

/// Asserts a refusal that names no approval, whatever its words.
pub fn policy_with_status(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{answer}");
    assert_eq!(
        answer.header("x-hoop-denied").as_deref(),
        Some("policy"),
        "{answer}"
    );
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some(TEXT),
        "{answer}"
    );
    for absent in [
        "x-hoop-approval-id",
        "x-hoop-approval-status",
        "x-hoop-review-id",
        "x-hoop-review-status",
        "retry-after",
    ] {
        assert_eq!(answer.header(absent), None, "{absent} in {answer}");
    }
    only_known_headers(answer);
}

/// Asserts that the upstream has answered.
pub fn passed(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer}");
    assert_eq!(answer.header("x-hoop-denied"), None, "{answer}");
    assert_eq!(answer.text(), crate::upstream::ANSWER_TEXT, "{answer}");
}

/// Asserts an answer under the reserved path: JSON, never stored, this status.
pub fn reserved(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{answer}");
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("application/json"),
        "{answer}"
    );
    assert_eq!(
        answer.header("cache-control").as_deref(),
        Some("no-store"),
        "{answer}"
    );
    assert_eq!(answer.header("x-hoop-denied"), None, "{answer}");
}

/// Asserts an error answer under the reserved path, with this exact message.
pub fn reserved_error(answer: &Answer, status: u16, message: &str) {
    reserved(answer, status);
    assert_eq!(
        answer.json(),
        serde_json::json!({"message": message}),
        "{answer}"
    );
    assert!(answer.body.ends_with(b"\n"), "{answer}");
}

fn review(answer: &Answer, status: Option<&str>, reason: &str) -> String {
    let id = named(answer, status);
    assert_eq!(
        answer.text(),
        format!("{MESSAGE}: {reason} (approval {id})\n"),
        "{answer}"
    );
    id
}

/// Asserts that a refusal names an approval which stands so, and gives its id.
fn named(answer: &Answer, status: Option<&str>) -> String {
    assert_eq!(answer.status, 403, "{answer}");
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some(TEXT),
        "{answer}"
    );
    assert_eq!(
        answer.header("x-hoop-denied").as_deref(),
        Some("review"),
        "{answer}"
    );
    let id = answer.header("x-hoop-approval-id");
    let id = id.unwrap_or_else(|| panic!("no approval id in {answer}"));
    assert_eq!(
        answer.header("x-hoop-review-id").as_deref(),
        Some(id.as_str()),
        "{answer}"
    );
    assert_eq!(
        answer.header("x-hoop-approval-status").as_deref(),
        status,
        "{answer}"
    );
    assert_eq!(
        answer.header("x-hoop-review-status").as_deref(),
        status,
        "{answer}"
    );
    only_known_headers(answer);
    id
}

/// The contract's set, `cache-control: no-store` (contract/envoy.md G3, 12), and what Envoy itself adds to every answer.
/// `connection` is Envoy's word (design 4).
fn only_known_headers(answer: &Answer) {
    assert_eq!(
        answer.header("cache-control").as_deref(),
        Some("no-store"),
        "{answer}"
    );
    for (name, _) in &answer.headers {
        assert!(
            KNOWN.contains(&name.as_str()),
            "unexpected {name} in {answer}"
        );
    }
}

/// The operator's message when none is configured.
pub const MESSAGE: &str = "statement held for human approval";

const TEXT: &str = "text/plain; charset=utf-8";
const KNOWN: [&str; 12] = [
    "content-type",
    "content-length",
    "x-hoop-denied",
    "x-hoop-approval-id",
    "x-hoop-approval-status",
    "x-hoop-review-id",
    "x-hoop-review-status",
    "retry-after",
    "cache-control",
    "connection",
    "date",
    "server",
];
