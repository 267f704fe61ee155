//! The flags of `host-sim descriptors` and `host-sim ledger`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use host_sim_ledger::proto::Currency;

/// Flags of `host-sim descriptors`.
#[derive(Args, Debug)]
pub struct DescriptorsArguments {
    /// A serialized FileDescriptorSet with all imports, as `protoc --include_imports --descriptor_set_out=FILE` or `buf build -o
    /// FILE.binpb` writes it.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print {"grpc": {"descriptors": "..."}}, the part of the filter's configuration, instead of the bare base64.
    #[arg(long)]
    pub json: bool,
}

/// Flags of `host-sim ledger`.
#[derive(Args, Debug)]
pub struct LedgerArguments {
    /// Where to call: the listener `ledger` of `host-sim up`, or whatever stands in front of a ledger.
    #[arg(
        long,
        global = true,
        value_name = "HOST:PORT",
        env = "HOST_SIM_LEDGER",
        default_value = LEDGER
    )]
    pub address: String,
    /// Metadata to send along; repeat it for more.
    #[arg(long, global = true, value_name = "NAME=VALUE", value_parser = metadata)]
    pub metadata: Vec<(String, String)>,
    /// How long the whole call may take; the server is told, too.
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: Option<Duration>,
    /// Compress what is sent, and accept compressed answers.
    #[arg(long, global = true)]
    pub gzip: bool,
    /// What to call.
    #[command(subcommand)]
    pub command: LedgerCommand,
}

/// The commands of `host-sim ledger`, one for each method.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Book one posting (Post: unary).
    Post {
        /// The account, such as demo/cash.
        #[arg(long, value_name = "ACCOUNT")]
        account: String,
        /// How much, such as 120.00; below zero takes money out.
        #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
        amount: String,
        /// In which currency.
        #[arg(long, value_name = "CURRENCY", default_value = "EUR", value_parser = currency)]
        currency: Currency,
        /// What it is for.
        #[arg(
            long,
            value_name = "TEXT",
            default_value = "",
            hide_default_value = true
        )]
        memo: String,
    },
    /// Say what an account holds (GetBalance: unary).
    Balance {
        /// The account, such as demo/cash.
        account: String,
        /// In which currency.
        #[arg(long, value_name = "CURRENCY", default_value = "EUR", value_parser = currency)]
        currency: Currency,
    },
    /// Print the postings of an account (Watch: the server streams).
    Watch {
        /// The account, such as demo/cash.
        account: String,
        /// Wait until there were so many [default: those that are there, without waiting].
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
        count: Option<u32>,
    },
    /// Book the postings of a file (Import: the client streams).
    Import {
        /// Lines of account,amount or account,amount,memo; `-` reads from stdin.
        file: PathBuf,
        /// In which currency.
        #[arg(long, value_name = "CURRENCY", default_value = "EUR", value_parser = currency)]
        currency: Currency,
    },
    /// Hold lines of a statement against the ledger (Reconcile: both stream).
    Reconcile {
        /// The lines, each as ID,ACCOUNT,AMOUNT, such as p-1,demo/cash,10000.00.
        #[arg(required = true, value_name = "POSTING")]
        postings: Vec<String>,
        /// In which currency.
        #[arg(long, value_name = "CURRENCY", default_value = "EUR", value_parser = currency)]
        currency: Currency,
    },
}

fn currency(text: &str) -> Result<Currency, String> {
    text.parse::<Currency>()
        .map_err(|_| "need one of CHF, EUR, GBP, JPY and USD".to_owned())
}

fn metadata(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("need a name and a value, such as x-request-id=42".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|deadline| !deadline.is_zero() && *deadline <= LONGEST_DEADLINE)
        .ok_or_else(|| "need seconds above zero, such as 5 or 0.5, up to a day".to_owned())
}

/// Longer waits are slips of the keyboard, and gRPC's own header ends at eight digits.
const LONGEST_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// Where `ledger` calls unless told otherwise: the listener `ledger` of `up`.
pub const LEDGER: &str = "127.0.0.1:18081";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn ledger(line: &str) -> Result<LedgerArguments, clap::Error> {
        let words = ["host-sim", "ledger"]
            .into_iter()
            .chain(line.split_whitespace());
        let Command::Ledger(arguments) = Arguments::try_parse_from(words)?.command else {
            panic!("another command")
        };
        Ok(arguments)
    }

    #[test]
    fn the_flags_of_a_call_may_stand_before_or_behind_the_command() {
        for line in [
            "--address h:1 --metadata a=b --metadata c=d=e --deadline 0.5 --gzip balance demo/cash",
            "balance demo/cash --gzip --deadline 0.5 --metadata a=b --metadata c=d=e --address h:1",
        ] {
            let arguments = ledger(line).expect("parses");
            assert_eq!(arguments.address, "h:1");
            let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            assert_eq!(arguments.metadata, [pair("a", "b"), pair("c", "d=e")]);
            assert_eq!(arguments.deadline, Some(Duration::from_millis(500)));
            assert!(arguments.gzip);
        }
        let arguments = ledger("balance demo/cash").expect("parses");
        assert_eq!(arguments.address, LEDGER);
        assert_eq!((arguments.deadline, arguments.gzip), (None, false));
    }

    #[test]
    fn an_amount_below_zero_is_no_flag() {
        let arguments = ledger("post --account a --amount -5.00 --currency chf").expect("parses");
        let LedgerCommand::Post {
            amount, currency, ..
        } = arguments.command
        else {
            panic!("another command")
        };
        assert_eq!((amount.as_str(), currency), ("-5.00", Currency::Chf));
    }

    #[test]
    fn err_flags() {
        for (line, expected) in [
            (
                "balance a --currency euro",
                "'--currency <CURRENCY>': need one of CHF, EUR, GBP, JPY and USD",
            ),
            (
                "balance a --metadata x",
                "'--metadata <NAME=VALUE>': need a name and a value, such as x-request-id=42",
            ),
            (
                "balance a --deadline 0",
                "'--deadline <SECONDS>': need seconds above zero, such as 5 or 0.5, up to a day",
            ),
            ("balance a --deadline inf", "need seconds above zero"),
            ("watch a --count 0", "0 is not in 1..=1000"),
            ("reconcile", "<POSTING>..."),
            ("post --account a", "--amount <AMOUNT>"),
        ] {
            let message = ledger(line).expect_err("refused").to_string();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
