//! One case, two hosts: [`on_both_hosts`](crate::on_both_hosts) makes a test of each, and a case that is listed in
//! [`crate::differences`] has to fail on the simulator.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::runtime::Builder;

use crate::differences;
use crate::host::Host;

/// Makes two tests of each case, an `async fn(Host)` of the calling module: `case::envoy` and `case::sim`.
#[macro_export]
macro_rules! on_both_hosts {
    ($($case:ident),+ $(,)?) => {$(
        mod $case {
            #[test]
            fn envoy() {
                $crate::case::run($crate::host::Host::Envoy, module_path!(), super::$case);
            }
            #[test]
            fn sim() {
                $crate::case::run($crate::host::Host::Sim, module_path!(), super::$case);
            }
        }
    )+};
}

/// Runs `case` on `host`. `place` is the path of the module that stands for it.
///
/// Fails when the case does, or when it is listed as a difference and passes all the same.
pub fn run<F: Future<Output = ()>>(host: Host, place: &str, case: impl FnOnce(Host) -> F) {
    let (_binary, name) = place.split_once("::").unwrap_or(("", place));
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let case = || runtime.block_on(case(host));
    judge(name, differences::of_case(host, name), case);
}

/// Runs `case`, which has to fail when there is a reason why it differs.
fn judge(name: &str, reason: Option<&str>, case: impl FnOnce()) {
    let Some(reason) = reason else {
        return case();
    };
    let ended = catch_unwind(AssertUnwindSafe(case));
    assert!(
        ended.is_err(),
        "the difference is gone: take {name:?} out of tests/src/differences.rs ({reason})"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_gets_its_host() {
        let seen = std::cell::Cell::new(None);
        run(Host::Sim, "cases::no_module::no_case", async |host| {
            seen.set(Some(host));
        });
        assert_eq!(seen.get(), Some(Host::Sim));
    }

    #[test]
    fn a_case_fails_when_it_does_and_a_listed_one_when_it_does_not() {
        let fails = |reason: Option<&str>, case: fn()| {
            catch_unwind(AssertUnwindSafe(|| judge("a::b", reason, case))).is_err()
        };
        assert!(!fails(None, || ()));
        assert!(fails(None, || panic!("no")));
        assert!(!fails(Some("a reason"), || panic!("no")));
        assert!(fails(Some("a reason"), || ()));
    }
}
