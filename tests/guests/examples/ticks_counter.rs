//! Counts ticks and requests in metrics and passes work from streams to the root by a shared queue.

#![expect(missing_docs, reason = "the SDK's macro makes the entry point")]

use std::time::Duration;

use log::info;
use proxy_wasm::hostcalls;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType, LogLevel, MetricType};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|_| -> Box<dyn RootContext> { Box::new(Root::default()) });
}}

#[derive(Default)]
struct Root {
    ticks: u32,
    queue: u32,
    tick_counter: u32,
    request_counter: u32,
    sizes: u32,
}

impl Context for Root {}

impl RootContext for Root {
    fn on_configure(&mut self, _size: usize) -> bool {
        let metric = |kind, name| hostcalls::define_metric(kind, name).unwrap_or_default();
        self.tick_counter = metric(MetricType::Counter, "guest.ticks");
        self.request_counter = metric(MetricType::Counter, "guest.requests");
        self.sizes = metric(MetricType::Histogram, "guest.work_size");
        self.queue = self.register_shared_queue("work");
        self.set_tick_period(Duration::from_millis(50));
        true
    }

    fn on_tick(&mut self) {
        self.ticks += 1;
        let counted = hostcalls::increment_metric(self.tick_counter, 1);
        info!("| tick {} counted: {counted:?}", self.ticks);
        if self.ticks == 2 {
            self.set_tick_period(Duration::ZERO);
        }
    }

    fn on_queue_ready(&mut self, queue: u32) {
        while let Ok(Some(work)) = self.dequeue_shared_queue(queue) {
            let text = String::from_utf8_lossy(&work);
            info!("| work from the queue: {text}");
            let recorded = hostcalls::record_metric(self.sizes, work.len() as u64);
            info!("| recorded: {recorded:?}");
        }
    }

    fn create_http_context(&self, _context: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Stream {
            queue: self.queue,
            request_counter: self.request_counter,
        }))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

struct Stream {
    queue: u32,
    request_counter: u32,
}

impl Context for Stream {}

impl HttpContext for Stream {
    fn on_http_request_headers(&mut self, _count: usize, _end: bool) -> Action {
        let counted = hostcalls::increment_metric(self.request_counter, 1);
        let value = hostcalls::get_metric(self.request_counter);
        let path = self.get_http_request_header_bytes(":path");
        let queued = self.enqueue_shared_queue(self.queue, path.as_deref());
        info!("| request counted: {counted:?}, queued: {queued:?}, requests so far: {value:?}");
        Action::Continue
    }
}
