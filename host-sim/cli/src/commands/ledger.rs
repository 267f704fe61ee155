//! `host-sim ledger`: one call of the demo service, through whatever stands in front of it. Its answer goes to stdout, a refusal
//! too, for that is what the call was answered.

mod lines;
mod money;

use std::io::Read;
use std::path::Path;

use host_sim_ledger::client::{self, CallError, Target};
use host_sim_ledger::proto::{Currency, GetBalanceRequest, PostRequest, WatchRequest};

use super::Outcome;
use crate::args::{LedgerArguments, LedgerCommand};
use crate::failure::Failure;
use crate::output;

/// Makes one of the calls.
pub(super) async fn run(arguments: &LedgerArguments) -> Result<Outcome, Failure> {
    let target = Target {
        address: arguments.address.clone(),
        metadata: arguments.metadata.clone(),
        deadline: arguments.deadline,
        gzip: arguments.gzip,
    };
    match call(&target, &arguments.command).await? {
        Ok(()) => Ok(Outcome::Done),
        Err(CallError::Refused(refused)) => {
            output::data(refused);
            Ok(Outcome::Refused)
        }
        Err(
            error @ (CallError::Address { .. }
            | CallError::Connect { .. }
            | CallError::Metadata { .. }),
        ) => Err(Failure::told(&error)),
    }
}

/// Fails where nothing can be sent.
async fn call(target: &Target, command: &LedgerCommand) -> Result<Result<(), CallError>, Failure> {
    let answered = match command {
        LedgerCommand::Post {
            account,
            amount,
            currency,
            memo,
        } => {
            let amount_minor = money::minor(amount, *currency)
                .map_err(|wrong| Failure::user(format_args!("--amount: {wrong}"), wrong.hint()))?;
            let posting = PostRequest {
                account: account.clone(),
                amount_minor,
                currency: (*currency).into(),
                memo: memo.clone(),
                ..PostRequest::default()
            };
            client::post(target, posting).await.map(print)
        }
        LedgerCommand::Balance { account, currency } => {
            let request = GetBalanceRequest {
                account: account.clone(),
                currency: (*currency).into(),
            };
            client::balance(target, request).await.map(print)
        }
        LedgerCommand::Watch { account, count } => {
            let request = WatchRequest {
                account: account.clone(),
                count: count.unwrap_or_default(),
            };
            client::watch(target, request, output::data).await
        }
        LedgerCommand::Import { file, currency } => {
            let postings = postings(file, *currency)?;
            client::import(target, postings).await.map(print)
        }
        LedgerCommand::Reconcile { postings, currency } => {
            let entries = lines::entries(postings, *currency)
                .map_err(|wrong| Failure::user(&wrong, wrong.hint()))?;
            client::reconcile(target, entries, output::data).await
        }
    };
    Ok(answered)
}

fn print(lines: Vec<String>) {
    for line in lines {
        output::data(line);
    }
}

fn postings(file: &Path, currency: Currency) -> Result<Vec<PostRequest>, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(file).map(|read| text = read)
    };
    let name = file.display();
    read.map_err(|error| {
        Failure::user(
            format_args!("{name}: cannot read the postings: {error}"),
            "give a text file with lines of account,amount or account,amount,memo, or `-` for stdin",
        )
    })?;
    lines::postings(&text, currency)
        .map_err(|wrong| Failure::user(format_args!("{name}:{wrong}"), wrong.hint()))
}
