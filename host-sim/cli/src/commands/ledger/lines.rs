//! Postings and entries of a statement as lines of text. Pure.

use host_sim_ledger::proto::{Currency, PostRequest, ReconcileRequest};

use super::money::{self, NoAmount};

/// A line that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum NoLine {
    #[error("{line}: found {found:?}, need account,amount or account,amount,memo")]
    Posting { line: usize, found: String },
    #[error("{line}: {wrong}")]
    PostingAmount { line: usize, wrong: NoAmount },
    #[error("1: found no posting")]
    NoPosting,
    #[error("{found:?} is no line of a statement, need ID,ACCOUNT,AMOUNT")]
    Entry { found: String },
    #[error("{found:?}: {wrong}")]
    EntryAmount { found: String, wrong: NoAmount },
}

impl NoLine {
    /// What to write instead.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            NoLine::Posting { .. } | NoLine::NoPosting => {
                "write each line as demo/rent,-850.00 or demo/rent,-850.00,rent for May; empty lines are passed over"
            }
            NoLine::Entry { .. } => {
                "write it as p-1,demo/cash,10000.00; `host-sim ledger watch demo/cash` shows the ids"
            }
            NoLine::PostingAmount { wrong, .. } | NoLine::EntryAmount { wrong, .. } => wrong.hint(),
        }
    }
}

/// The postings of a file. What stands behind the second comma is the memo, as it is.
pub(super) fn postings(text: &str, currency: Currency) -> Result<Vec<PostRequest>, NoLine> {
    let mut postings = Vec::new();
    for (line, found) in (1..).zip(text.lines()) {
        if found.trim().is_empty() {
            continue;
        }
        let mut columns = found.splitn(3, ',').map(str::trim);
        let (Some(account), Some(amount)) = (columns.next(), columns.next()) else {
            return Err(NoLine::Posting {
                line,
                found: found.to_owned(),
            });
        };
        let amount_minor = money::minor(amount, currency)
            .map_err(|wrong| NoLine::PostingAmount { line, wrong })?;
        postings.push(PostRequest {
            account: account.to_owned(),
            amount_minor,
            currency: currency.into(),
            memo: columns.next().unwrap_or_default().to_owned(),
            ..PostRequest::default()
        });
    }
    if postings.is_empty() {
        return Err(NoLine::NoPosting);
    }
    Ok(postings)
}

/// Entries of a statement, each as `ID,ACCOUNT,AMOUNT`.
pub(super) fn entries(
    lines: &[String],
    currency: Currency,
) -> Result<Vec<ReconcileRequest>, NoLine> {
    let entry = |line: &String| {
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let [id, account, amount] = columns.as_slice() else {
            return Err(NoLine::Entry {
                found: line.clone(),
            });
        };
        let amount_minor = money::minor(amount, currency).map_err(|wrong| NoLine::EntryAmount {
            found: line.clone(),
            wrong,
        })?;
        Ok(ReconcileRequest {
            posting_id: (*id).to_owned(),
            account: (*account).to_owned(),
            amount_minor,
            currency: currency.into(),
        })
    };
    lines.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memo_is_all_behind_the_second_comma() {
        let text = "demo/rent,-850.00,rent, May\r\n\n demo/cash , 1 \n";
        let postings = postings(text, Currency::Eur).expect("read");
        let read: Vec<_> = postings
            .iter()
            .map(|posting| {
                (
                    posting.account.as_str(),
                    posting.amount_minor,
                    posting.memo.as_str(),
                )
            })
            .collect();
        assert_eq!(
            read,
            [("demo/rent", -85_000, "rent, May"), ("demo/cash", 100, "")]
        );
        assert!(
            postings
                .iter()
                .all(|posting| posting.currency() == Currency::Eur)
        );
    }

    #[test]
    fn err_postings() {
        for (text, expected) in [
            (
                "a,1\nb\n",
                "2: found \"b\", need account,amount or account,amount,memo",
            ),
            ("account,amount\na,1\n", "1: \"amount\" is no amount in EUR"),
            ("\n \n", "1: found no posting"),
        ] {
            let error = postings(text, Currency::Eur).expect_err("refused");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn an_entry_is_an_id_an_account_and_an_amount() {
        let read = |line: &str| entries(&[line.to_owned()], Currency::Eur);
        let entry = &read("p-1,demo/cash,10000.00").expect("read")[0];
        assert_eq!(
            (entry.posting_id.as_str(), entry.account.as_str()),
            ("p-1", "demo/cash")
        );
        assert_eq!(entry.amount_minor, 1_000_000);
        for (line, expected) in [
            (
                "p-1",
                "\"p-1\" is no line of a statement, need ID,ACCOUNT,AMOUNT",
            ),
            ("p-1,a,x", "\"p-1,a,x\": \"x\" is no amount in EUR"),
        ] {
            assert_eq!(read(line).expect_err("refused").to_string(), expected);
        }
    }
}
