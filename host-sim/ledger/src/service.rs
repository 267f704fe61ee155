//! Owns what each method does. tonic drives it, through `observe`. It must not know sockets, scripts that are not a refusal,
//! or what may be booked: that is the books'.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{mpsc, watch};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{Request, Response, Status, Streaming};

use crate::{
    GREET,
    books::{Books, Refusal, check_account},
    limits::{ANSWERS_WAITING, WATCHED},
    observe::Handling,
    proto::{
        GetBalanceRequest, GetBalanceResponse, ImportResponse, PostRequest, PostResponse, Posting,
        ReconcileRequest, ReconcileResponse, Total, WatchRequest, ledger_server,
    },
    record::{Message, OpenCall},
};

/// The methods, over books that they share.
#[derive(Clone)]
pub(crate) struct Service(Arc<Shared>);

struct Shared {
    books: Mutex<Books>,
    /// Told of each posting, for those who watch.
    booked: watch::Sender<()>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared {
            books: Mutex::new(Books::new()),
            booked: watch::Sender::new(()),
        }))
    }
}

impl Shared {
    fn post(&self, request: PostRequest) -> Result<PostResponse, Refusal> {
        let answer = self.books().post(request)?;
        self.booked.send_replace(());
        Ok(answer)
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl ledger_server::Ledger for Service {
    async fn get_balance(
        &self,
        request: Request<GetBalanceRequest>,
    ) -> Result<Response<GetBalanceResponse>, Status> {
        let request = read(request, Message::GetBalance)?;
        Ok(Response::new(self.0.books().balance(request)?))
    }

    async fn post(&self, request: Request<PostRequest>) -> Result<Response<PostResponse>, Status> {
        let request = read(request, Message::Post)?;
        Ok(Response::new(self.0.post(request)?))
    }

    type WatchStream = Answers<Posting>;

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let request = read(request, Message::Watch)?;
        check_account(&request.account)?;
        if request.count > WATCHED {
            return Err(Status::invalid_argument(format!(
                "count is {}; allowed: up to {WATCHED}; watch in several calls",
                request.count
            )));
        }
        let (sender, answers) = mpsc::channel(ANSWERS_WAITING);
        tokio::spawn(watch(Arc::clone(&self.0), request, sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }

    async fn import(
        &self,
        request: Request<Streaming<PostRequest>>,
    ) -> Result<Response<ImportResponse>, Status> {
        let call = open(&request)?;
        let mut requests = request.into_inner();
        let mut sum = ImportResponse::default();
        let mut totals = BTreeMap::<i32, i128>::new();
        while let Some(request) = requests.message().await? {
            call.received(Message::Post(request.clone()));
            let (currency, amount) = (request.currency, i128::from(request.amount_minor));
            if self.0.post(request)?.repeated_key {
                sum.repeated_keys += 1;
            } else {
                sum.booked += 1;
                *totals.entry(currency).or_default() += amount;
            }
        }
        for (currency, total) in totals {
            let amount_minor = i64::try_from(total).map_err(|_| {
                Status::out_of_range(format!(
                    "the {} postings are booked, but their sum leaves the range of 64 bits; import fewer at once",
                    sum.booked
                ))
            })?;
            sum.totals.push(Total {
                currency,
                amount_minor,
            });
        }
        Ok(Response::new(sum))
    }

    type ReconcileStream = Answers<ReconcileResponse>;

    async fn reconcile(
        &self,
        request: Request<Streaming<ReconcileRequest>>,
    ) -> Result<Response<Self::ReconcileStream>, Status> {
        let call = open(&request)?;
        let greeting = request
            .metadata()
            .get(GREET)
            .map(|name| format!("hello, {}", String::from_utf8_lossy(name.as_bytes())));
        let (sender, answers) = mpsc::channel(ANSWERS_WAITING);
        let shared = Arc::clone(&self.0);
        tokio::spawn(reconcile(
            shared,
            call,
            request.into_inner(),
            greeting,
            sender,
        ));
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }
}

/// Sends the account's postings until there were enough, or nobody listens any more.
async fn watch(
    shared: Arc<Shared>,
    request: WatchRequest,
    answers: mpsc::Sender<Result<Posting, Status>>,
) {
    let mut booked = shared.booked.subscribe();
    let (mut sent, mut place) = (0, 0);
    while request.count == 0 || sent < request.count {
        let next = shared.books().next_of(&request.account, place);
        if let Some((posting, behind)) = next {
            if sent == WATCHED || answers.send(Ok(posting)).await.is_err() {
                return;
            }
            sent += 1;
            place = behind;
            continue;
        }
        if request.count == 0 {
            return;
        }
        tokio::select! {
            changed = booked.changed() => if changed.is_err() { return },
            () = answers.closed() => return,
        }
    }
}

/// Answers each line, until the client has no more or goes.
async fn reconcile(
    shared: Arc<Shared>,
    call: OpenCall,
    mut lines: Streaming<ReconcileRequest>,
    greeting: Option<String>,
    answers: mpsc::Sender<Result<ReconcileResponse, Status>>,
) {
    if let Some(note) = greeting {
        let greeting = ReconcileResponse {
            note,
            ..ReconcileResponse::default()
        };
        if answers.send(Ok(greeting)).await.is_err() {
            return;
        }
    }
    let mut number = 0_u32;
    loop {
        let line = tokio::select! {
            line = lines.message() => line,
            () = answers.closed() => return,
        };
        let answer = match line {
            Ok(Some(line)) => {
                call.received(Message::Reconcile(line.clone()));
                number = number.saturating_add(1);
                Ok(shared.books().compare(number, line))
            }
            Ok(None) => return,
            Err(status) => Err(status),
        };
        let last = answer.is_err();
        if answers.send(answer).await.is_err() || last {
            return;
        }
    }
}

/// Records the one message of a call, and refuses it where a script says so.
fn read<T: Clone>(request: Request<T>, message: impl FnOnce(T) -> Message) -> Result<T, Status> {
    let handling = handling(&request)?;
    let refusal = handling.refusal.clone();
    let call = handling.call.clone();
    let asked = request.into_inner();
    call.received(message(asked.clone()));
    refusal.map_or(Ok(asked), Err)
}

/// The call of a client that streams, unless a script refuses it.
fn open<T>(request: &Request<T>) -> Result<OpenCall, Status> {
    let handling = handling(request)?;
    match &handling.refusal {
        Some(status) => Err(status.clone()),
        None => Ok(handling.call.clone()),
    }
}

fn handling<T>(request: &Request<T>) -> Result<&Handling, Status> {
    request.extensions().get().ok_or_else(|| {
        Status::internal("the call is not recorded: `observe` does not stand around the service")
    })
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code(), refusal.to_string())
    }
}
