//! The proxy from outside: bytes in, bytes out, at the client and at the upstream. Each expectation was seen on Envoy 1.40.

mod access_log;
mod direct;
mod refused;
mod requests;
mod scene;
mod tls;
