//! Owns calls to a ledger, with their outcomes in words. The command line and tests drive it. It must not know what stands
//! between it and the ledger: whoever refuses a call is quoted.
//!
//! ```no_run
//! use host_sim_ledger::{client::{self, Target}, proto::{Currency, PostRequest}};
//!
//! # async fn run() -> Result<(), client::CallError> {
//! let target = Target::new("127.0.0.1:10000");
//! let posting = PostRequest {
//!     account: "demo/rent".into(),
//!     amount_minor: 1250,
//!     currency: Currency::Eur.into(),
//!     ..PostRequest::default()
//! };
//! for line in client::post(&target, posting).await? {
//!     println!("{line}");
//! }
//! # Ok(())
//! # }
//! ```

mod refused;
mod target;
mod text;

use thiserror::Error;
use tokio::time::Instant;
use tonic::{Code, Request, Status, codec::CompressionEncoding, transport::Channel};

pub use self::{refused::Refused, target::Target};
use crate::proto::{
    GetBalanceRequest, PostRequest, ReconcileRequest, WatchRequest, ledger_client::LedgerClient,
};

/// Why a call gave no answer, or not the whole of it.
#[derive(Debug, Error)]
pub enum CallError {
    /// The address is none that can be called. The caller's to mend.
    #[error(
        "{found:?} is no address of a gRPC server without TLS: {problem}\nhint: write host:port, such as 127.0.0.1:10000"
    )]
    Address {
        /// What was given.
        found: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Nobody answered there.
    #[error("cannot connect to {address}\nhint: is the stack running, and is this its port?")]
    Connect {
        /// Where.
        address: String,
        /// Why not.
        #[source]
        cause: tonic::transport::Error,
    },
    /// A pair that cannot be sent as metadata. The caller's to mend.
    #[error(
        "{name:?} with this value is no metadata of a caller's: {problem}\nhint: write name and value in visible ASCII, such as \
         x-request-id and 42; a name in -bin takes base64"
    )]
    Metadata {
        /// The name; the value may be a secret.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The call was made and refused, by whoever stands there or by the deadline.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Books one posting and says what became of it.
///
/// # Errors
///
/// When the call cannot be made or is refused. After a failed connection or a deadline, whether it was booked is unknown;
/// with an idempotency key it may be sent again.
pub async fn post(target: &Target, posting: PostRequest) -> Result<Vec<String>, CallError> {
    within(target, async {
        let request = target.request(posting)?;
        let mut client = connect(target).await?;
        let answer = client.post(request).await.map_err(refused)?;
        Ok(text::posted(&answer.into_inner()))
    })
    .await
}

/// Says what an account holds.
///
/// # Errors
///
/// When the call cannot be made or is refused.
pub async fn balance(
    target: &Target,
    request: GetBalanceRequest,
) -> Result<Vec<String>, CallError> {
    within(target, async {
        let request = target.request(request)?;
        let mut client = connect(target).await?;
        let answer = client.get_balance(request).await.map_err(refused)?;
        Ok(text::balance(&answer.into_inner()))
    })
    .await
}

/// Says each posting of an account as it comes.
///
/// # Errors
///
/// When the call cannot be made, is refused or breaks off. What was said before stays right.
pub async fn watch(
    target: &Target,
    request: WatchRequest,
    mut say: impl FnMut(String),
) -> Result<(), CallError> {
    within(target, async {
        let request = target.request(request)?;
        let mut client = connect(target).await?;
        let answer = client.watch(request).await.map_err(refused)?;
        let mut postings = answer.into_inner();
        while let Some(posting) = postings.message().await.map_err(refused)? {
            say(text::posting(&posting));
        }
        Ok(())
    })
    .await
}

/// Books many postings and says their sum.
///
/// # Errors
///
/// When the call cannot be made or is refused. Those before the refused one are booked.
pub async fn import(target: &Target, postings: Vec<PostRequest>) -> Result<Vec<String>, CallError> {
    within(target, async {
        let postings = target.request(tokio_stream::iter(postings))?;
        let mut client = connect(target).await?;
        let answer = client.import(postings).await.map_err(refused)?;
        Ok(text::imported(&answer.into_inner()))
    })
    .await
}

/// Says of each line of a statement how the ledger agrees, as the answer comes.
///
/// # Errors
///
/// When the call cannot be made, is refused or breaks off. What was said before stays right.
pub async fn reconcile(
    target: &Target,
    lines: Vec<ReconcileRequest>,
    mut say: impl FnMut(String),
) -> Result<(), CallError> {
    within(target, async {
        let lines = target.request(tokio_stream::iter(lines))?;
        let mut client = connect(target).await?;
        let answer = client.reconcile(lines).await.map_err(refused)?;
        let mut states = answer.into_inner();
        while let Some(state) = states.message().await.map_err(refused)? {
            say(text::reconciled(&state));
        }
        Ok(())
    })
    .await
}

/// The generated client on a new connection to the target, with its compression: for calls that the functions here do not
/// make. Metadata and deadline are each call's own.
///
/// # Errors
///
/// When the address is none, or nobody answers there.
pub async fn connect(target: &Target) -> Result<LedgerClient<Channel>, CallError> {
    let endpoint = target.endpoint()?;
    let channel = endpoint
        .connect()
        .await
        .map_err(|cause| CallError::Connect {
            address: target.address.clone(),
            cause,
        })?;
    let client = LedgerClient::new(channel);
    Ok(if target.gzip {
        client
            .send_compressed(CompressionEncoding::Gzip)
            .accept_compressed(CompressionEncoding::Gzip)
    } else {
        client
    })
}

/// The call, ended by the target's deadline. tonic's own ends with the head of the answer, so a stream could hang for ever;
/// and tonic calls what it ends cancelled.
async fn within<T>(
    target: &Target,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let Some(deadline) = target.deadline else {
        return call.await;
    };
    let passed = || {
        refused(Status::deadline_exceeded(format!(
            "no whole answer within {deadline:?}"
        )))
    };
    let Some(end) = Instant::now().checked_add(deadline) else {
        return call.await;
    };
    let outcome = tokio::time::timeout_at(end, call).await;
    match outcome {
        Ok(Err(CallError::Refused(refusal)))
            if refusal.code == Code::Cancelled && Instant::now() >= end =>
        {
            Err(passed())
        }
        Ok(outcome) => outcome,
        Err(_) => Err(passed()),
    }
}

fn refused(status: Status) -> CallError {
    CallError::Refused(Refused::from(&status))
}

impl Target {
    fn request<T>(&self, message: T) -> Result<Request<T>, CallError> {
        let mut request = Request::new(message);
        *request.metadata_mut() = self.metadata_map()?;
        if let Some(deadline) = self.deadline {
            request.set_timeout(deadline);
        }
        Ok(request)
    }
}
