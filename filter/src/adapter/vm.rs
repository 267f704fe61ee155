//! What all streams of a VM share: the listener, the calls that are under way, the poller and the ticker. Carries effects and
//! orders out; holds no rule of its own.
//!
//! Every call to the Control Plane belongs to the root context, so that its answer arrives also when its stream has gone: what
//! it released must not be lost unseen.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::cancellations::Cancellations;
use super::heartbeat::Heartbeat;
use super::hostcalls::{self, Metrics};
use crate::approval_request;
use crate::config::McpConfig;
use crate::control_plane::{ControlPlane, PlaneAnswer, PlaneCall, PlaneFault};
use crate::effect::{Effect, WaitName};
use crate::event::{Event, News, Pace};
use crate::limits;
use crate::listener::Listener;
use crate::poller::{self, Asks, Order, Poller, Watcher};
use crate::stream::Stream;
use crate::table::Table;

/// One configured VM.
#[derive(Debug)]
pub(super) struct Vm {
    pub listener: Listener,
    root_id: u32,
    metrics: Metrics,
    streams: RefCell<Table<Watcher, Rc<RefCell<Stream>>>>,
    /// Calls to send once the root context is active.
    outbox: RefCell<VecDeque<(Errand, PlaneCall)>>,
    in_flight: RefCell<Table<u32, Errand>>,
    /// Streams that are to be told of something, in turn.
    tidings: RefCell<VecDeque<(Watcher, News)>>,
    poller: RefCell<Poller>,
    heartbeat: Option<Heartbeat>,
    /// When the host will tick next.
    armed: Cell<Option<u64>>,
    /// What is to take the place of the piece of an answer that is passing.
    piece: RefCell<Option<Piece>>,
    /// The names of waits that may be given up by a notice of their client, and whether they were.
    cancellable: RefCell<Table<Watcher, (WaitName, bool)>>,
    cancellations: Cancellations,
    /// Answers that are held back at their end.
    ending: RefCell<VecDeque<Watcher>>,
    /// What the gauge was told.
    shown_as_held: Cell<usize>,
}

/// A piece of an answer.
#[derive(Debug)]
pub(super) struct Piece {
    pub bytes: Vec<u8>,
    /// Whether the answer is held back with it.
    pub holds_back: bool,
}

/// Stands for no stream; the host numbers from 1.
const NOBODY: Watcher = 0;

/// What a call was for.
#[derive(Debug)]
enum Errand {
    Heartbeat,
    Poller(poller::Errand),
    Stream(Watcher),
}

impl Vm {
    pub fn new(listener: Listener, root_id: u32) -> Self {
        let serves_tools = matches!(listener.mcp, McpConfig::Served(_));
        Self {
            poller: RefCell::new(Poller::new(
                listener.poll_interval_ms,
                if serves_tools {
                    Asks::Reads
                } else {
                    Asks::Claims
                },
            )),
            heartbeat: listener
                .heartbeat
                .then(|| Heartbeat::new(hostcalls::now_ms())),
            listener,
            root_id,
            metrics: Metrics::define(serves_tools),
            streams: RefCell::default(),
            outbox: RefCell::default(),
            in_flight: RefCell::default(),
            tidings: RefCell::default(),
            armed: Cell::new(None),
            piece: RefCell::default(),
            cancellable: RefCell::default(),
            cancellations: Cancellations::new(),
            ending: RefCell::default(),
            shown_as_held: Cell::new(0),
        }
    }

    /// A stream that can be told of what it waits for.
    pub fn add(&self, id: Watcher, stream: Stream) -> Rc<RefCell<Stream>> {
        let stream = Rc::new(RefCell::new(stream));
        self.streams.borrow_mut().insert(id, Rc::clone(&stream));
        stream
    }

    /// A stream that has ended.
    pub fn forget(&self, id: Watcher) {
        self.streams.borrow_mut().remove(&id);
        self.cancellable.borrow_mut().remove(&id);
        self.poller.borrow_mut().unwatch(id);
        self.show_held();
    }

    /// Carries out what a stream wants, in one of its own callbacks.
    pub fn carry_out_in_callback(&self, id: Watcher, effects: Vec<Effect>) {
        self.carry_out(id, effects);
        if !self.outbox.borrow().is_empty() {
            hostcalls::tick_as_root(self.root_id);
            hostcalls::act_for(id);
        }
    }

    /// The root context is active: do what is due, send what waits, and ask for the next tick.
    pub fn tick(&self) {
        let now = hostcalls::now_ms();
        if !self.cancellable.borrow().is_empty() {
            for name in self.cancellations.news() {
                self.cancel(name, now);
            }
        }
        if let Some(plane) = &self.listener.control_plane {
            let orders = self.poller.borrow_mut().tick(plane, now);
            self.obey(orders);
            if self.heartbeat.as_ref().is_some_and(|beat| beat.is_due(now)) {
                let call = (Errand::Heartbeat, plane.handshake());
                self.outbox.borrow_mut().push_back(call);
            }
            // Whoever is told may have something to ask.
            self.tell_some();
            self.send_all(plane);
        }
        self.arm(now);
        self.show_held();
    }

    /// The host's ticker fired, so it has to be set anew.
    pub fn ticked(&self) {
        self.armed.set(None);
        self.end_answers();
        self.tick();
    }

    /// The answer to one of the calls.
    pub fn answered(&self, token: u32, answer: PlaneAnswer) {
        let Some(plane) = &self.listener.control_plane else {
            return;
        };
        let Some(errand) = self.in_flight.borrow_mut().remove(&token) else {
            log::warn!("the host answered a call that was not made");
            return;
        };
        self.take_answer(plane, errand, Ok(answer));
        self.tick();
    }

    fn take_answer(
        &self,
        plane: &ControlPlane,
        errand: Errand,
        answer: Result<PlaneAnswer, PlaneFault>,
    ) {
        match errand {
            Errand::Heartbeat => Heartbeat::answered(answer),
            Errand::Poller(errand) => {
                let now = hostcalls::now_ms();
                let orders = self
                    .poller
                    .borrow_mut()
                    .answered(plane, errand, answer, now);
                self.obey(orders);
            }
            Errand::Stream(id) => match self.reach(id) {
                Some(stream) => self.deliver(id, &stream, Event::PlaneAnswered(answer)),
                None => self.carry_out(id, approval_request::answered_nobody(answer)),
            },
        }
    }

    fn send_all(&self, plane: &ControlPlane) {
        loop {
            let next = self.outbox.borrow_mut().pop_front();
            let Some((errand, call)) = next else { return };
            match hostcalls::call_plane(&call) {
                Ok(token) => {
                    self.in_flight.borrow_mut().insert(token, errand);
                }
                Err(_) => self.take_answer(plane, errand, Err(PlaneFault::Unsent)),
            }
        }
    }

    fn obey(&self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Call(call, errand) => {
                    let errand = Errand::Poller(errand);
                    self.outbox.borrow_mut().push_back((errand, call));
                }
                Order::Count(counter) => self.metrics.increment(counter),
                Order::Log(level, line) => log::log!(level, "{line}"),
                Order::Nobody(release) => {
                    self.carry_out(NOBODY, approval_request::released_for_nobody(&release));
                }
                Order::Tell(id, news) => self.tidings.borrow_mut().push_back((id, news)),
            }
        }
    }

    /// Tells the next few streams; the others have their turn with the next tick.
    fn tell_some(&self) {
        for _ in 0..limits::TOLD_AT_ONCE {
            let next = self.tidings.borrow_mut().pop_front();
            let Some((id, news)) = next else { return };
            self.tell(id, news);
        }
    }

    fn tell(&self, id: Watcher, news: News) {
        match (self.reach(id), news) {
            (Some(stream), news) => self.deliver(id, &stream, Event::Watched(news)),
            (None, News::Released(release)) => {
                self.carry_out(id, approval_request::released_for_nobody(&release));
            }
            (None, News::NotChecked | News::Read { .. } | News::Stands(_) | News::TimeOver) => {}
        }
    }

    /// A stream that is still there, made the one that hostcalls act for.
    fn reach(&self, id: Watcher) -> Option<Rc<RefCell<Stream>>> {
        let stream = self.streams.borrow().get(&id).cloned()?;
        hostcalls::act_for(id).then_some(stream)
    }

    fn deliver(&self, id: Watcher, stream: &RefCell<Stream>, event: Event) {
        let effects = match stream.try_borrow_mut() {
            Ok(mut stream) => stream.handle(&self.listener, event),
            Err(_) => {
                log::error!("a stream was told of something while it was busy");
                Vec::new()
            }
        };
        self.carry_out(id, effects);
    }

    fn carry_out(&self, id: Watcher, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Answer(answer) => hostcalls::answer(&answer),
                Effect::AnswerHead(headers) => hostcalls::replace_answer_head(&headers),
                Effect::AnswerEnd(bytes) => {
                    self.pass(bytes, true);
                    self.ending.borrow_mut().push_back(id);
                    self.arm(hostcalls::now_ms());
                }
                // Not even an empty piece may follow: Envoy 1.40 then forgets that it was to end an HTTP/2 stream.
                Effect::AnswerOver => self.pass(Vec::new(), true),
                Effect::AnswerPiece(bytes) => self.pass(bytes, false),
                Effect::CallPlane(call) => {
                    let errand = Errand::Stream(id);
                    self.outbox.borrow_mut().push_back((errand, call));
                }
                Effect::Cancel { wait } => {
                    self.cancellations.tell(wait);
                    self.cancel(wait, hostcalls::now_ms());
                }
                Effect::Cancellable { wait } => {
                    if self.cancellable.borrow().is_empty() {
                        // Nobody has looked for a while: what was told meanwhile is about waits that are over.
                        drop(self.cancellations.news());
                    }
                    self.cancellable.borrow_mut().insert(id, (wait, false));
                }
                Effect::Count(counter) => self.metrics.increment(counter),
                Effect::Forward(_) | Effect::ForwardMessages(_) => hostcalls::resume_request(),
                Effect::ForwardPaced { bytes } => hostcalls::resume_paced(bytes),
                Effect::ForwardAnswer => hostcalls::resume_response(),
                Effect::Log { level, line } => log::log!(level, "{line}"),
                Effect::Note(note) => hostcalls::note(&note),
                Effect::RemoveRequestTrailers => hostcalls::remove_request_trailers(),
                Effect::Reset => hostcalls::reset_stream(),
                Effect::Settle {
                    id,
                    pending,
                    settlement,
                } => {
                    if let Some(plane) = &self.listener.control_plane {
                        self.obey(poller::settle(plane, &id, &pending, settlement));
                    }
                }
                Effect::Watch {
                    id: approval,
                    budget_ms,
                    settles_later,
                } => {
                    let now = hostcalls::now_ms();
                    let mut poller = self.poller.borrow_mut();
                    poller.watch(id, approval, budget_ms, settles_later, now);
                    let cancellable = self.cancellable.borrow();
                    if cancellable
                        .get(&id)
                        .is_some_and(|(_, is_given_up)| *is_given_up)
                    {
                        poller.hurry(id, now);
                    }
                }
            }
        }
    }

    fn cancel(&self, name: WaitName, now: u64) {
        for (id, (named, is_given_up)) in self.cancellable.borrow_mut().iter_mut() {
            if *named == name {
                *is_given_up = true;
                self.poller.borrow_mut().hurry(*id, now);
            }
        }
        self.arm(now);
    }

    fn pass(&self, bytes: Vec<u8>, holds_back: bool) {
        self.piece.replace(Some(Piece { bytes, holds_back }));
    }

    /// What is to take the place of the piece that is passing.
    pub fn take_piece(&self) -> Option<Piece> {
        self.piece.take()
    }

    /// Lets the answers go that are held back at their end. Not in the callback that held them back: Envoy 1.40 would not send them.
    fn end_answers(&self) {
        for _ in 0..limits::TOLD_AT_ONCE {
            let next = self.ending.borrow_mut().pop_front();
            let Some(id) = next else { return };
            if let Some(stream) = self.reach(id) {
                hostcalls::resume_response();
                self.deliver(id, &stream, Event::Paced(Pace::LetGo));
            }
        }
    }

    /// Asks for a tick when the next thing is due, and for none while nothing is.
    fn arm(&self, now: u64) {
        let beat = self.heartbeat.as_ref().map(Heartbeat::next);
        let is_busy = !self.tidings.borrow().is_empty() || !self.ending.borrow().is_empty();
        let tidings = is_busy.then_some(now);
        let polling = self.poller.borrow().next_tick();
        let due = [polling, beat, tidings].into_iter().flatten().min();
        if due != self.armed.get() || due.is_some_and(|due| due <= now) {
            hostcalls::set_tick_period(due.map(|due| due.saturating_sub(now).max(1)));
            self.armed.set(due);
        }
    }

    fn show_held(&self) {
        let held = self.poller.borrow().waiting();
        let shown = self.shown_as_held.replace(held);
        if held != shown {
            self.metrics.change_waiting(shown, held);
        }
    }
}
