//! Waiting for a condition, never for a time: every wait in the cases goes through here.

use std::time::Duration;

use tokio::time::Instant;

/// How long a condition may take before the case fails. Generous, because two cores run several Envoys at once.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Looks every few milliseconds until `condition` gives a value, and fails the case after [`PATIENCE`] with `what` it waited for.
pub async fn until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "waited {PATIENCE:?} in vain: {what}"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

/// [`until`] for threads without a runtime.
pub fn blocking<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "waited {PATIENCE:?} in vain: {what}"
        );
        std::thread::sleep(PAUSE);
    }
}

/// Fails the case when `future` takes longer than [`PATIENCE`].
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("took longer than {PATIENCE:?}: {what}"),
    }
}

const PAUSE: Duration = Duration::from_millis(15);
