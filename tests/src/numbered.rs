//! An honest plane for many requests at once, as replies of a [`LyingPlane`](crate::lying_plane::LyingPlane): the approval of
//! `/payments/7` has the number 7 in its id.

use serde_json::json;

use crate::http1::Message;
use crate::lying_plane::{Reply, path_id, statement};

/// The approval of the call to [`target`]`(number)`.
pub fn id(number: usize) -> String {
    format!("0f1e2d3c-4b5a-4697-8897-{number:012}")
}

/// The target that is filed under [`id`]`(number)`.
pub fn target(number: usize) -> String {
    format!("/payments/{number}")
}

/// Files every statement as pending.
pub fn filing() -> Reply {
    Reply::Made(|call| Reply::review(201, false, &id(number_of(call)), "PENDING"))
}

/// Releases whatever is claimed.
pub fn released_claim() -> Reply {
    Reply::Made(|call| Reply::review(200, true, &path_id(call), "EXECUTED"))
}

/// Answers to each claim that nobody has decided.
pub fn undecided_claim() -> Reply {
    Reply::Made(|call| Reply::review(200, false, &path_id(call), "PENDING"))
}

/// Lists the approvals of these numbers, all in one state.
pub fn list(numbers: std::ops::Range<usize>, state: &str) -> Reply {
    let ids: Vec<String> = numbers.map(id).collect();
    let rows: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), state)).collect();
    Reply::list(&rows)
}

/// A plane that has no list.
pub fn no_list() -> Reply {
    Reply::json(404, &json!({"message": "not found"}))
}

fn number_of(filing: &Message) -> usize {
    let statement = String::from_utf8_lossy(&statement(filing)).into_owned();
    let target = statement.split([' ', '\n']).nth(1).unwrap_or_default();
    let digits = target.rsplit('/').next().unwrap_or_default();
    digits.parse().expect("a target with a number at its end")
}
