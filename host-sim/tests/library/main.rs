//! What the library promises, tried from the outside: small guests in WAT, driven through `host_sim::sim`. Where Envoy has an
//! answer, it is the one that was measured on Envoy 1.40.

mod guest;
mod scene;

mod buffers;
mod callouts;
mod competing_replies;
mod crashes;
mod deadlines;
mod endings;
mod grpc;
mod headers;
mod hostile_guests;
mod interleavings;
mod limits;
mod loading;
mod observability;
mod paced;
mod pauses;
mod properties;
mod reconfiguration;
mod replies;
mod resuming;
mod roots;
mod shared;
mod sizes;
mod starting;
mod time;
mod topology;
mod wasi;
