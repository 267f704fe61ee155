//! `host-sim approvals`: what a person does with approval requests. Each command is one call of the plane's people's API.

mod client;
mod review;
pub(super) mod sidecars;

use crate::args::{ApprovalsArguments, ApprovalsCommand};
use crate::failure::Failure;
use crate::output;
use client::{Client, Decision};
use review::Review;

/// Runs one of the commands.
pub(super) async fn run(arguments: &ApprovalsArguments) -> Result<(), Failure> {
    let client = Client::new(&arguments.plane, &arguments.data_dir)?;
    match &arguments.command {
        ApprovalsCommand::List {
            status,
            limit,
            json,
        } => {
            let answer = client
                .list(status.map(|status| status.as_str()), *limit)
                .await?;
            let reviews: Vec<Review> = client.read(&answer)?;
            if *json {
                output::data(format_args!("{answer:#}"));
            } else {
                print_table(&reviews);
            }
        }
        ApprovalsCommand::Show { id, json } => {
            let answer = client.show(id).await?;
            let review: Review = client.read(&answer)?;
            if *json {
                output::data(format_args!("{answer:#}"));
            } else {
                output::data(review.page());
            }
        }
        ApprovalsCommand::Approve { id } => decide(&client, id, &Decision::Approve).await?,
        ApprovalsCommand::Reject { id, reason } => {
            decide(
                &client,
                id,
                &Decision::Reject {
                    reason: reason.clone(),
                },
            )
            .await?;
        }
        ApprovalsCommand::Revoke { id } => decide(&client, id, &Decision::Revoke).await?,
    }
    Ok(())
}

async fn decide(client: &Client, id: &str, decision: &Decision) -> Result<(), Failure> {
    let review: Review = client.read(&client.decide(id, decision).await?)?;
    output::data(review.line());
    if let Some(next) = review.next() {
        output::progress(next);
    }
    Ok(())
}

fn print_table(reviews: &[Review]) {
    if reviews.is_empty() {
        output::progress("no approval requests");
    } else {
        output::data(review::table(reviews));
    }
}
