//! The tools: what a client is shown of them, and how their arguments are read. Source: contract 5.2.

use serde_json::{Map, Value};

use super::answers;
use crate::approval::ApprovalId;
use crate::limits;
use crate::mcp::json_rpc::clipped;

/// By which of its two names a tool was called. An answer points to the tools of the same family, since an agent may be allowed no
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Approval,
    Review,
}

impl Family {
    /// What its tools' names begin with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Review => "review",
        }
    }
}

/// A call that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Status(ApprovalId),
    Wait { id: ApprovalId, seconds: u64 },
    List(Listing),
}

/// Which approvals are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub status: Option<&'static str>,
    pub limit: u32,
}

/// A call that cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// No tool has this name.
    UnknownTool,
    /// The arguments are not the tool's: a result, so that the model reads what is wrong.
    Result(String),
}

const STATUSES: [&str; 7] = [
    "PENDING",
    "APPROVED",
    "REJECTED",
    "REVOKED",
    "PROCESSING",
    "EXECUTED",
    "EXPIRED",
];

/// Reads a call.
pub(super) fn read(name: &str, arguments: &Map<String, Value>) -> Result<(Family, Tool), Refused> {
    let (family, verb) = [Family::Approval, Family::Review]
        .into_iter()
        .find_map(|family| {
            let verb = name.strip_prefix(family.prefix())?.strip_prefix('_')?;
            Some((family, verb))
        })
        .ok_or(Refused::UnknownTool)?;
    let allowed: &[&str] = match verb {
        "status" => &["id"],
        "wait" => &["id", "timeout_seconds"],
        "list" => &["limit", "status"],
        _ => return Err(Refused::UnknownTool),
    };
    if let Some(unknown) = arguments
        .keys()
        .find(|key| !allowed.contains(&key.as_str()))
    {
        return Err(wrong(&format!(
            "unknown argument {:?}: {name} takes {}",
            clipped(unknown),
            allowed.join(" and ")
        )));
    }
    let tool = match verb {
        "list" => Tool::List(Listing {
            status: status(arguments)?,
            limit: limit(arguments)?,
        }),
        verb => {
            let id = approval_id(arguments)?;
            if verb == "wait" {
                let seconds = wait_seconds(arguments)?;
                Tool::Wait { id, seconds }
            } else {
                Tool::Status(id)
            }
        }
    };
    Ok((family, tool))
}

fn wrong(text: &str) -> Refused {
    Refused::Result(answers::failure(text))
}

/// What is no id names no approval, and the Control Plane is not asked.
fn approval_id(arguments: &Map<String, Value>) -> Result<ApprovalId, Refused> {
    match arguments.get("id") {
        None | Some(Value::Null) => Err(wrong("id is required")),
        Some(Value::String(id)) if id.is_empty() => Err(wrong("id is required")),
        Some(Value::String(id)) => ApprovalId::parse(id.as_bytes())
            .ok_or_else(|| Refused::Result(answers::not_found(&clipped(id)))),
        Some(_) => Err(wrong("id must be a text")),
    }
}

fn wait_seconds(arguments: &Map<String, Value>) -> Result<u64, Refused> {
    let (lowest, highest) = limits::WAIT_SECONDS;
    Ok(match whole(arguments, "timeout_seconds")? {
        None => limits::DEFAULT_WAIT_SECONDS,
        Some(seconds) => seconds.clamp(lowest, highest),
    })
}

fn limit(arguments: &Map<String, Value>) -> Result<u32, Refused> {
    Ok(match whole(arguments, "limit")? {
        None => limits::DEFAULT_LISTED,
        Some(limit) => u32::try_from(limit)
            .unwrap_or(limits::LIST_LIMIT)
            .min(limits::LIST_LIMIT),
    })
}

/// A whole number; `None` where it is not given or not above 0, which asks for the default. One beyond all bounds is the largest.
fn whole(arguments: &Map<String, Value>, name: &str) -> Result<Option<u64>, Refused> {
    let refuse = || Err(wrong(&format!("{name} must be a whole number")));
    let number = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number,
        Some(_) => return refuse(),
    };
    if let Some(whole) = number.as_u64() {
        return Ok(Some(whole).filter(|whole| *whole > 0));
    }
    // As -1, 60.0, or larger than any whole number that is read as one.
    let text = number.to_string();
    if text.starts_with('-') || text == "0.0" {
        return Ok(None);
    }
    let is_huge = text
        .split_once('e')
        .is_some_and(|(_, exponent)| !exponent.starts_with('-'));
    match text.strip_suffix(".0") {
        Some(whole) => Ok(Some(whole.parse().unwrap_or(u64::MAX))),
        None if is_huge => Ok(Some(u64::MAX)),
        None => refuse(),
    }
}

fn status(arguments: &Map<String, Value>) -> Result<Option<&'static str>, Refused> {
    match arguments.get("status") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) if word.is_empty() => Ok(None),
        Some(Value::String(word)) => {
            let known = STATUSES.into_iter();
            let mut known = known.filter(|status| word.eq_ignore_ascii_case(status));
            known.next().map(Some).ok_or_else(|| {
                wrong(&format!(
                    "unknown status {:?}: it is one of {}",
                    clipped(word),
                    STATUSES.join(", ")
                ))
            })
        }
        Some(_) => Err(wrong("status must be a text")),
    }
}

/// All tools as `tools/list` shows them, in an order that never changes.
pub(super) fn list() -> String {
    let mut tools = String::new();
    for family in [Family::Approval, Family::Review] {
        for tool in &SHOWN {
            if !tools.is_empty() {
                tools.push(',');
            }
            let name = format!("{}_{}", family.prefix(), tool.verb);
            let alias = match family {
                Family::Approval => String::new(),
                Family::Review => format!("Alias of approval_{}. ", tool.verb),
            };
            let description = tool.description.replace('$', family.prefix());
            let output = tool.output.replace('$', APPROVAL).replace('%', REQUIRED);
            tools.push_str(&format!(
                r#"{{"name":"{name}","description":"{alias}{description}{NEXT}","inputSchema":{{"type":"object","additionalProperties":false,{}}},"outputSchema":{{"type":"object",{output}}},"annotations":{{"readOnlyHint":true}}}}"#,
                tool.input
            ));
        }
    }
    format!("[{tools}]")
}

struct Shown {
    verb: &'static str,
    /// With `$` for the family's word.
    description: &'static str,
    /// Members of the schema of its arguments.
    input: &'static str,
    /// Members of the schema of its result, with `$` for the properties of an approval and `%` for those that are always there.
    output: &'static str,
}

/// How every description ends.
const NEXT: &str = " next says what to do: wait = nobody has decided, do not resend; resend_identical_statement = send the same bytes again, \
     they run once; stop = do nothing unless a person asks.";

const SHOWN: [Shown; 3] = [
    Shown {
        verb: "status",
        description: "Read one approval request by the id that a denial named. Nothing is approved or spent by reading.",
        input: r#""properties":{"id":{"type":"string","description":"The approval id of the denial"}},"required":["id"]"#,
        output: r#""properties":{$},"required":[%]"#,
    },
    Shown {
        verb: "wait",
        description: "Wait until a person has decided about an approval request, or the time is over. timed_out=true is no error: call $_wait again.",
        input: r#""properties":{"id":{"type":"string","description":"The approval id of the denial"},"timeout_seconds":{"type":"integer","default":60,"maximum":300,"description":"How long to wait. Some clients give a call up after 60 to 120 seconds"}},"required":["id"]"#,
        output: r#""properties":{$,"timed_out":{"type":"boolean"},"waited_seconds":{"type":"integer"}},"required":[%,"timed_out","waited_seconds"]"#,
    },
    Shown {
        verb: "list",
        description: "List the approval requests that were filed here, newest first, whichever listener filed them.",
        input: r#""properties":{"status":{"type":"string","description":"PENDING, APPROVED, REJECTED, REVOKED, PROCESSING, EXECUTED or EXPIRED; all without it"},"limit":{"type":"integer","default":20,"maximum":200}}"#,
        output: r#""properties":{"reviews":{"type":"array","items":{"type":"object","properties":{$},"required":[%]}}},"required":["reviews"]"#,
    },
];

const APPROVAL: &str = r#""id":{"type":"string"},"status":{"type":"string"},"listener_name":{"type":"string"},"approval_rule":{"type":"string"},"created_at":{"type":"string","format":"date-time"},"decided_at":{"type":"string","format":"date-time"},"rejection_reason":{"type":"string"},"expires_at":{"type":"string","format":"date-time"},"next":{"type":"string","enum":["wait","resend_identical_statement","stop"]},"instruction":{"type":"string"}"#;

const REQUIRED: &str =
    r#""id","status","listener_name","approval_rule","created_at","next","instruction""#;
