//! Owns a ledger on a socket for the length of one case, and the time limit of every wait. All cases use it.

use std::{net::SocketAddr, time::Duration};

use host_sim_ledger::{
    Ledger, ServeError,
    client::{self, Target},
    proto::{Currency, PostRequest, ledger_client::LedgerClient},
    tonic::transport::Channel,
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// A ledger that is served until this is dropped or stopped.
pub(crate) struct Served {
    pub(crate) ledger: Ledger,
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), ServeError>>,
}

impl Served {
    pub(crate) async fn new() -> Self {
        Self::of(Ledger::new()).await
    }

    pub(crate) async fn of(ledger: Ledger) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let (stop, stopped) = oneshot::channel();
        let serving = ledger.clone();
        let server = tokio::spawn(async move {
            serving
                .serve(listener, async {
                    let _ = stopped.await;
                })
                .await
        });
        Self {
            ledger,
            address,
            stop,
            server,
        }
    }

    pub(crate) fn target(&self) -> Target {
        Target::new(self.address.to_string())
    }

    pub(crate) async fn client(&self) -> LedgerClient<Channel> {
        client::connect(&self.target()).await.expect("a connection")
    }

    /// Stops it, and says how serving ended.
    pub(crate) async fn stop(self) -> Result<(), ServeError> {
        let _ = self.stop.send(());
        soon(self.server).await.expect("no panic")
    }
}

/// The outcome, which must come before the limit: a case that waits in vain fails here and does not hang.
pub(crate) async fn soon<T>(outcome: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, outcome)
        .await
        .expect("it never came")
}

/// 12.50 EUR to demo/rent.
pub(crate) fn rent() -> PostRequest {
    PostRequest {
        account: "demo/rent".to_owned(),
        amount_minor: 1250,
        currency: Currency::Eur.into(),
        memo: "rent".to_owned(),
        ..PostRequest::default()
    }
}

/// Far longer than anything here takes on a slow machine.
const LIMIT: Duration = Duration::from_secs(30);
