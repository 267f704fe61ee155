//! Owns a plane's start and stop: the data directory, the tokens, the socket. The command line and the tests drive it. It
//! must not know what any route does.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::Router;
use thiserror::Error;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::{
    api::{self, Api, Credentials},
    clock::{Clock, SystemClock},
    config::PlaneConfig,
    limits::SHUTDOWN_GRACE,
    store::sqlite::{Recorded, SqliteStore},
    tokens::{self, Token, TokenError, TokenKind},
};

/// A local Control Plane on one data directory. Two planes on one directory share its reviews and tokens.
#[derive(Clone)]
pub struct Plane {
    api: Api,
    sidecar_token: Token,
    approver_token: Token,
}

impl Plane {
    /// Opens the plane that lives in `data_dir`, or makes it there: the directory, the database and the two tokens.
    ///
    /// A token whose file was deleted is replaced by a new one, and the old one opens nothing any more. Several planes
    /// on one directory open one after another.
    ///
    /// # Errors
    ///
    /// When the directory, the database or a token file cannot be made, read or trusted. What was there stays.
    pub async fn open(data_dir: &Path, config: PlaneConfig) -> Result<Self, OpenError> {
        Self::open_with_clock(data_dir, config, Arc::new(SystemClock)).await
    }

    /// The same under a clock of the caller's.
    ///
    /// # Errors
    ///
    /// As [`Plane::open`].
    pub async fn open_with_clock(
        data_dir: &Path,
        config: PlaneConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        // These few small files are read and written before anything is served, so blocking harms nobody.
        tokens::create_data_dir(data_dir).map_err(|cause| OpenError::DataDir {
            path: data_dir.to_owned(),
            cause,
        })?;
        // Two that make the tables at once break each other's migration, and two that make a token at once disagree.
        let _one_at_a_time = lock(data_dir).await?;
        let path = data_dir.join(DATABASE);
        refuse_open_to_others(&path)?;
        let store = SqliteStore::open(&path, clock)
            .await
            .map_err(|cause| OpenError::Database {
                path: path.clone(),
                cause: Box::new(cause),
            })?;
        let (sidecar_token, sidecar_id) = credential(&store, data_dir, TokenKind::Sidecar).await?;
        let (approver_token, _) = credential(&store, data_dir, TokenKind::Approver).await?;
        let credentials = Credentials {
            sidecar_id,
            sidecar: sidecar_token.digest(),
            approver: approver_token.digest(),
        };
        let api = Api {
            store,
            config: Arc::new(config),
            credentials: Arc::new(credentials),
        };
        Ok(Self {
            api,
            sidecar_token,
            approver_token,
        })
    }

    /// What a sidecar sends as `hoop-sidecar-token`.
    pub const fn sidecar_token(&self) -> &Token {
        &self.sidecar_token
    }

    /// What a person sends as `Authorization: Bearer`.
    pub const fn approver_token(&self) -> &Token {
        &self.approver_token
    }

    /// All routes, for a socket or for a call without one.
    pub fn router(&self) -> Router {
        api::router(self.api.clone())
    }

    /// Serves until `shutdown` ends, then lets open requests finish for a few seconds and closes the database.
    ///
    /// # Errors
    ///
    /// When the socket fails. The database is closed then too.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let signal = async move {
            shutdown.await;
            // The other end is there until the serving ends.
            let _ = stop.send(());
        };
        let serving = axum::serve(listener, self.router()).with_graceful_shutdown(signal);
        let grace_is_over = async {
            if stopped.await.is_err() {
                // The serving ended by itself; its own result is the one that counts.
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(SHUTDOWN_GRACE).await;
        };
        let served = tokio::select! {
            served = serving => served,
            // A client that keeps a request open must not keep the plane from stopping.
            () = grace_is_over => Ok(()),
        };
        self.close().await;
        served.map_err(ServeError::Socket)
    }

    /// Closes the database. Nothing is lost without it: what was answered is on the disk already.
    pub async fn close(&self) {
        self.api.store.close().await;
    }
}

impl std::fmt::Debug for Plane {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Plane").finish_non_exhaustive()
    }
}

/// Makes the token file and the database agree. The file leads: it is what the operator can see, delete and restore.
async fn credential(
    store: &SqliteStore,
    data_dir: &Path,
    kind: TokenKind,
) -> Result<(Token, Uuid), OpenError> {
    let (token, made) = tokens::read_or_create(data_dir, kind)?;
    let (id, recorded) = store
        .record_credential(kind, &token.digest())
        .await
        .map_err(|cause| OpenError::Credentials(Box::new(cause)))?;
    let file = kind.file_name();
    match (recorded, made) {
        (Recorded::Same, _) => {}
        (Recorded::First, true) => tracing::info!(file, "made a token"),
        (Recorded::First, false) => tracing::info!(file, "took over the token of the file"),
        (Recorded::Replaced, true) => {
            tracing::warn!(
                file,
                "the token file was missing: made a new token, and the old one opens nothing any more"
            );
        }
        (Recorded::Replaced, false) => {
            tracing::warn!(
                file,
                "the token file has changed: its token counts, and the old one opens nothing any more"
            );
        }
    }
    Ok((token, id))
}

/// Waits until no other plane is being opened on this directory; the lock ends when the file is dropped.
///
/// The file stays behind. Deleting it would let a third plane lock a new one while the second waits for the old.
async fn lock(data_dir: &Path) -> Result<File, OpenError> {
    let path = data_dir.join(LOCK);
    let waiting = {
        let path = path.clone();
        move || {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(path)?;
            file.lock()?;
            Ok(file)
        }
    };
    // The wait can last as long as another plane's migration, which must not hold up the caller's other tasks.
    let locked = tokio::task::spawn_blocking(waiting).await;
    locked
        .unwrap_or_else(|ended| Err(io::Error::other(ended)))
        .map_err(|cause| OpenError::Lock { path, cause })
}

/// A database that other users can read has shown them every statement, and one that they can write decides nothing.
fn refuse_open_to_others(path: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(path) {
        Ok(found) if found.permissions().mode() & tokens::OTHERS != 0 => {
            Err(OpenError::OpenToOthers {
                path: path.to_owned(),
                mode: found.permissions().mode() & 0o7777,
            })
        }
        Ok(_) => Ok(()),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(OpenError::DataDir {
            path: path.to_owned(),
            cause,
        }),
    }
}

/// Why a plane could not be opened. All but a failing database is the operator's to mend.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The tokens' hashes could not be kept.
    #[error("cannot record the tokens in the database")]
    Credentials(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The directory cannot be made or read.
    #[error("cannot use {} as the plane's data\nhint: name a directory that this user can create or write", .path.display())]
    DataDir {
        /// What could not be used.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The database cannot be opened or brought up to date.
    #[error(
        "cannot open the database {}\nhint: check the free space, that no other program holds the file, and that it was \
         written by this version or an older one; to start with an empty plane, stop every plane on it and move it away",
        .path.display()
    )]
    Database {
        /// The file.
        path: PathBuf,
        /// What it said.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The opening cannot be kept apart from another plane's.
    #[error(
        "cannot lock {}\nhint: check who owns the file, and that the file system has locks (some network file systems \
         have none)",
        .path.display()
    )]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Group or others may read or write the database.
    #[error(
        "{} has mode {mode:04o}, so other users could read statements or decide approval requests; allowed: 0600\nhint: \
         run `chmod 600 {}`",
        .path.display(), .path.display()
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A token cannot be had.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Why serving ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The socket failed.
    #[error("the plane's socket failed")]
    Socket(#[source] io::Error),
}

/// The database's name in the data directory.
const DATABASE: &str = "plane.sqlite3";
/// The file that is locked while a plane opens.
const LOCK: &str = "plane.lock";
