//! Owns the words for answers, one line each. The client drives it. It must not know calls.

use crate::{
    currency::amount,
    proto::{
        EntryState, GetBalanceResponse, ImportResponse, PostResponse, Posting, ReconcileResponse,
    },
};

pub(super) fn posted(answer: &PostResponse) -> Vec<String> {
    let Some(booked) = &answer.posting else {
        return vec!["booked, but the answer does not say what".to_owned()];
    };
    let done = if answer.repeated_key {
        "already booked under this key"
    } else {
        "booked"
    };
    vec![
        format!("{done}: {}", posting(booked)),
        format!(
            "balance of {}: {}",
            printable(&booked.account),
            amount(answer.balance_minor, booked.currency)
        ),
    ]
}

pub(super) fn balance(answer: &GetBalanceResponse) -> Vec<String> {
    vec![format!(
        "{}: {} in {}",
        printable(&answer.account),
        amount(answer.balance_minor, answer.currency),
        counted(answer.postings, "posting")
    )]
}

pub(super) fn posting(posting: &Posting) -> String {
    let mut line = format!(
        "{}  {} to {}",
        printable(&posting.id),
        amount(posting.amount_minor, posting.currency),
        printable(&posting.account)
    );
    if let Some(date) = &posting.value_date {
        line += &format!(", value date {date}");
    }
    if !posting.memo.is_empty() {
        line += &format!(", {}", printable(&posting.memo));
    }
    for (name, value) in &posting.labels {
        line += &format!(" [{}={}]", printable(name), printable(value));
    }
    line
}

pub(super) fn imported(answer: &ImportResponse) -> Vec<String> {
    let mut line = format!("booked {}", counted(answer.booked, "posting"));
    if answer.repeated_keys > 0 {
        line += &format!(", {} booked before", answer.repeated_keys);
    }
    let totals = answer
        .totals
        .iter()
        .map(|total| format!("total: {}", amount(total.amount_minor, total.currency)));
    std::iter::once(line).chain(totals).collect()
}

pub(super) fn reconciled(answer: &ReconcileResponse) -> String {
    let note = printable(&answer.note);
    let state = match EntryState::try_from(answer.state) {
        Ok(EntryState::Matched) => "matched".to_owned(),
        Ok(EntryState::Differs) => "differs".to_owned(),
        Ok(EntryState::Missing) => "missing".to_owned(),
        Ok(EntryState::Unspecified) if answer.line == 0 => return note,
        Ok(EntryState::Unspecified) | Err(_) => format!("in state {}", answer.state),
    };
    let line = format!("{}  {} {state}", answer.line, printable(&answer.posting_id));
    if note.is_empty() {
        line
    } else {
        format!("{line}: {note}")
    }
}

/// The text with control characters written out. It comes from a server, and a terminal obeys some of them.
pub(super) fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    safe
}

fn counted(count: u32, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}
