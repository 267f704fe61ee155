//! Owns a ledger's start and stop, and the handle by which a test reads and scripts it. The command line and tests drive it.
//! It must not know what any method does.

use std::{pin::pin, sync::Arc};

use thiserror::Error;
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    time::timeout,
};
use tonic::{
    codec::CompressionEncoding,
    transport::{Server, server::TcpIncoming},
};

use crate::{
    DESCRIPTORS,
    limits::{MESSAGE_BYTES, SHUTDOWN_GRACE},
    observe::Observe,
    proto::ledger_server::LedgerServer,
    record::{Call, Method, Record},
    script::{Script, Scripts},
    service::Service,
};

/// Why serving ended. What was booked stays in the handle.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The descriptors in this binary cannot be served. Our fault.
    #[error(
        "cannot serve the descriptors that this binary was built with\nhint: build it again from a clean checkout"
    )]
    Descriptors(#[source] tonic_reflection::server::Error),
    /// The server failed.
    #[error("cannot serve on the socket\nhint: start the ledger again")]
    Socket(#[source] tonic::transport::Error),
}

/// Serves a new ledger on this socket until `shutdown` ends. See [`Ledger::serve`].
///
/// # Errors
///
/// As [`Ledger::serve`].
pub async fn serve(
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    Ledger::new().serve(listener, shutdown).await
}

/// A ledger: its books, the record of what arrived, and the scripts in wait. Clones are handles on the same.
#[derive(Clone)]
pub struct Ledger {
    service: Service,
    record: Arc<Record>,
    scripts: Arc<Scripts>,
    max_message_bytes: usize,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// A ledger with the account `demo/cash`, which holds 10000.00 EUR.
    pub fn new() -> Self {
        Self {
            service: Service::new(),
            record: Arc::new(Record::new()),
            scripts: Arc::new(Scripts::default()),
            max_message_bytes: MESSAGE_BYTES,
        }
    }

    /// The same, and refuses messages over so many bytes, before and after decompression. Without it: 4 MiB.
    #[must_use]
    pub fn with_max_message_bytes(mut self, most: usize) -> Self {
        self.max_message_bytes = most;
        self
    }

    /// Serves HTTP/2 with prior knowledge until `shutdown` ends; then calls that are under way are ended with
    /// `UNAVAILABLE`, and connections have two seconds to go. The messages may be compressed with gzip or deflate, and are
    /// in the answer with the first of the two that the client accepts. Answers reflection, v1 and v1alpha.
    ///
    /// # Errors
    ///
    /// When the server cannot be set up or fails.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
        };
        let v1 = reflection().build_v1().map_err(ServeError::Descriptors)?;
        let v1alpha = reflection()
            .build_v1alpha()
            .map_err(ServeError::Descriptors)?;
        let ledger = LedgerServer::new(self.service.clone())
            .accept_compressed(CompressionEncoding::Gzip)
            .accept_compressed(CompressionEncoding::Deflate)
            .send_compressed(CompressionEncoding::Gzip)
            .send_compressed(CompressionEncoding::Deflate)
            .max_decoding_message_size(self.max_message_bytes);

        let (close, closing) = watch::channel(false);
        let (record, scripts) = (Arc::clone(&self.record), Arc::clone(&self.scripts));
        let observe = tower::layer::layer_fn(move |inner| Observe {
            inner,
            record: Arc::clone(&record),
            scripts: Arc::clone(&scripts),
            closing: closing.clone(),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let server = Server::builder()
            .layer(observe)
            .add_service(ledger)
            .add_service(v1)
            .add_service(v1alpha)
            .serve_with_incoming_shutdown(
                TcpIncoming::from(listener).with_nodelay(Some(true)),
                async {
                    // An error says that the sender is gone, and so is this server then.
                    let _ = stopped.await;
                },
            );
        let mut server = pin!(server);
        tokio::select! {
            ended = &mut server => return ended.map_err(ServeError::Socket),
            () = shutdown => {}
        }
        close.send_replace(true);
        let _ = stop.send(());
        // Whoever does not go in time is left to the runtime: a stop must not hang on a peer.
        match timeout(SHUTDOWN_GRACE, server).await {
            Ok(ended) => ended.map_err(ServeError::Socket),
            Err(_) => Ok(()),
        }
    }

    /// What arrived, oldest first: every call to this server, also for reflection or to a method that does not exist. The
    /// latest 4,096 are kept.
    pub fn calls(&self) -> Vec<Call> {
        self.record.calls()
    }

    /// The same of one method.
    pub fn calls_of(&self, method: Method) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|call| call.method == Some(method));
        calls
    }

    /// How many calls of a method arrived, whatever became of them.
    pub fn call_count(&self, method: Method) -> u64 {
        self.record.call_count(method)
    }

    /// How many messages of a method were received and decoded.
    pub fn message_count(&self, method: Method) -> u64 {
        self.record.message_count(method)
    }

    /// How many calls were cancelled, of any method.
    pub fn cancelled_count(&self) -> u64 {
        self.record.cancelled_count()
    }

    /// The oldest call of which this is true, as soon as there is one. Waits for ever otherwise; the caller brings the
    /// time limit.
    pub async fn wait_for(&self, is_it: impl FnMut(&Call) -> bool) -> Call {
        self.record.first(is_it).await
    }

    /// Has one later call of this method answered by the script. Scripts of a method are played in order, each once; a
    /// call takes its script when it arrives.
    pub fn script_next(&self, method: Method, script: Script) {
        self.scripts.push(method, script);
    }
}
