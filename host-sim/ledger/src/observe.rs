//! Owns what happens around every call at the level of HTTP/2: that it is recorded, how it ends, that a stop ends it, and the
//! scripts that tonic's handlers cannot play. The server drives it. It must not know any message.

use std::{
    convert::Infallible,
    future::pending,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::watch;
use tonic::{Code, Status, body::Body};
use tower::Service;

use crate::{
    record::{Ending, OpenCall, Record},
    script::{Script, Scripts},
};

/// What a handler finds in the extensions of its request.
#[derive(Clone)]
pub(crate) struct Handling {
    pub(crate) call: OpenCall,
    /// The status of [`Script::Refuse`].
    pub(crate) refusal: Option<Status>,
}

/// Watches the calls of the service inside.
#[derive(Clone)]
pub(crate) struct Observe<S> {
    pub(crate) inner: S,
    pub(crate) record: Arc<Record>,
    pub(crate) scripts: Arc<Scripts>,
    /// Becomes true, or loses its sender, when the server stops.
    pub(crate) closing: watch::Receiver<bool>,
}

impl<S> Service<Request<Body>> for Observe<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let call = self.record.begin(request.uri().path(), request.headers());
        let script = call.method().and_then(|method| self.scripts.take(method));
        request.extensions_mut().insert(Handling {
            call: call.clone(),
            refusal: match &script {
                Some(Script::Refuse(status)) => Some(status.clone()),
                Some(Script::Hang | Script::HangAfterHead | Script::RefuseAfterAnswer(_))
                | None => None,
            },
        });
        let request = request.map(|inner| {
            Body::new(Asked {
                inner,
                call: call.clone(),
            })
        });
        // From here on whoever drops the answer unfinished has cancelled the call.
        let guard = Guard(call);
        let answer = self.inner.call(request);
        let mut stop = stop(self.closing.clone());
        Box::pin(async move {
            let answered = async {
                let answer = answer.await;
                if matches!(script, Some(Script::Hang)) {
                    pending::<()>().await;
                }
                answer
            };
            let answer = tokio::select! {
                biased;
                answer = answered => answer?,
                () = &mut stop => stopping().into_http(),
            };
            Ok(watched(answer, script, guard, stop))
        })
    }
}

/// Plays the rest of the script on the answer, and watches its body to the end.
fn watched(
    mut answer: Response<Body>,
    script: Option<Script>,
    guard: Guard,
    stop: Stop,
) -> Response<Body> {
    let (hangs, ends_with) = match script {
        Some(Script::HangAfterHead) => (true, None),
        Some(Script::RefuseAfterAnswer(status)) => (false, Some(status)),
        Some(Script::Hang | Script::Refuse(_)) | None => (false, None),
    };
    if hangs {
        for name in ["grpc-status", "grpc-message", "grpc-status-details-bin"] {
            answer.headers_mut().remove(name);
        }
    } else if let Some(code) = code(answer.headers()) {
        guard.0.ended(Ending::Answered(code));
    }
    answer.map(|inner| {
        if !hangs && inner.is_end_stream() {
            return inner;
        }
        Body::new(Answer {
            inner: (!hangs).then_some(inner),
            ends_with,
            guard,
            stop,
            over: false,
        })
    })
}

/// Cancels its call when it goes, if that had not ended.
struct Guard(OpenCall);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.ended(Ending::Cancelled);
    }
}

/// A request's body. tonic tells a handler that a reset is the orderly end of its request, and a broken connection a fault of
/// it; either is answered, to nobody. Only here is it seen that the client has gone.
struct Asked {
    inner: Body,
    call: OpenCall,
}

impl http_body::Body for Asked {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if let Some(Err(_)) = &frame {
            self.call.ended(Ending::Cancelled);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// An answer's body.
struct Answer {
    /// None: nothing comes any more.
    inner: Option<Body>,
    ends_with: Option<Status>,
    guard: Guard,
    stop: Stop,
    over: bool,
}

impl Answer {
    fn end(&mut self, code: Code) {
        self.over = true;
        self.guard.0.ended(Ending::Answered(code));
    }

    fn trailers(&mut self, status: &Status) -> Option<Result<Frame<Bytes>, Status>> {
        self.end(status.code());
        let mut trailers = HeaderMap::new();
        Some(
            status
                .add_header(&mut trailers)
                .map(|()| Frame::trailers(trailers)),
        )
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let polled = match &mut self.inner {
            Some(inner) => Pin::new(inner).poll_frame(context),
            None => Poll::Pending,
        };
        let Poll::Ready(frame) = polled else {
            ready!(self.stop.as_mut().poll(context));
            return Poll::Ready(self.trailers(&stopping()));
        };
        Poll::Ready(match frame {
            Some(Ok(frame)) => match frame.trailers_ref() {
                Some(trailers) => match self.ends_with.take() {
                    Some(status) => self.trailers(&status),
                    None => {
                        let code = code(trailers).unwrap_or(Code::Unknown);
                        self.end(code);
                        Some(Ok(frame))
                    }
                },
                None => Some(Ok(frame)),
            },
            Some(Err(status)) => {
                self.end(status.code());
                Some(Err(status))
            }
            None => {
                self.end(Code::Unknown);
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }
}

/// Ends when the server stops.
type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

fn stop(mut closing: watch::Receiver<bool>) -> Stop {
    Box::pin(async move {
        // An error says that the server is gone, which is the same.
        let _ = closing.wait_for(|closing| *closing).await;
    })
}

fn stopping() -> Status {
    Status::unavailable("the ledger stops; call again when it runs")
}

fn code(headers: &HeaderMap) -> Option<Code> {
    headers
        .get("grpc-status")
        .map(|value| Code::from_bytes(value.as_bytes()))
}
