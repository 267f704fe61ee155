//! The end-to-end cases: one binary, a module for each promise that an operator or an agent relies on.

mod access_log;
mod bodies;
mod config_refusals;
mod connections;
mod differential;
mod encoded_bodies;
mod flood;
mod framing;
mod guests;
mod headers;
mod json_bodies;
mod json_streams;
mod main_loop;
mod observability;
mod operator;
mod path_readings;
mod paths;
mod plane_faults;
mod reserved_path;
mod rule_conditions;
mod rules;
mod spend_on_acceptance;
mod statement;
mod tls;
mod virtual_time;
