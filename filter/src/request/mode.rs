//! The client's wish how a held request is answered: `x-hoop-approval-mode` or its earlier name. Source: contract 3.2.
//!
//! Both modes need the approval, only the wait moves, so any client may choose. A typo must not make an agent wait for
//! a person: unless every value that was sent is valid and all agree, the listener decides.

/// How a held request is answered while nobody has decided. Source: contract 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The request waits; its client gets no byte before the decision.
    Hold,
    /// The request is refused at once, with the id of its approval.
    Return,
}

/// The two names of the header.
pub const HEADERS: [&str; 2] = ["x-hoop-approval-mode", "x-hoop-review-mode"];

/// The values that came under the two names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeWish {
    seen: [bool; 2],
    wish: Option<Mode>,
    spoilt: bool,
}

impl ModeWish {
    /// Takes a header, whatever its name is.
    pub fn add(&mut self, name: &str, value: &[u8]) {
        let both = HEADERS.iter().zip(&mut self.seen);
        let Some((_, seen)) = both.into_iter().find(|(header, _)| **header == name) else {
            return;
        };
        // A header that stands twice is one joined value to others, and no mode.
        self.spoilt |= std::mem::replace(seen, true);
        let value = value.trim_ascii();
        if value.is_empty() {
            return;
        }
        let mode = if value.eq_ignore_ascii_case(b"hold") {
            Mode::Hold
        } else if value.eq_ignore_ascii_case(b"return") {
            Mode::Return
        } else {
            self.spoilt = true;
            return;
        };
        self.spoilt |= self.wish.replace(mode).is_some_and(|other| other != mode);
    }

    /// The mode that the client asks for; `None` leaves it to the listener.
    #[must_use]
    pub fn mode(&self) -> Option<Mode> {
        self.wish.filter(|_| !self.spoilt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(headers: &[(&str, &str)]) -> Option<Mode> {
        let mut wish = ModeWish::default();
        for (name, value) in headers {
            wish.add(name, value.as_bytes());
        }
        wish.mode()
    }

    const NEW: &str = "x-hoop-approval-mode";
    const OLD: &str = "x-hoop-review-mode";

    #[test]
    fn a_valid_value_is_a_wish_under_either_name() {
        assert_eq!(wish(&[(NEW, "Return ")]), Some(Mode::Return));
        assert_eq!(wish(&[(OLD, "\tHOLD")]), Some(Mode::Hold));
        assert_eq!(wish(&[(NEW, "hold"), (OLD, "Hold")]), Some(Mode::Hold));
        assert_eq!(wish(&[(NEW, ""), (OLD, "return")]), Some(Mode::Return));
    }

    #[test]
    fn whatever_leaves_a_doubt_is_no_wish() {
        for headers in [
            &[][..],
            &[(NEW, "")],
            &[(NEW, "maybe")],
            &[(NEW, "hold"), (OLD, "return")],
            &[(NEW, "hold"), (NEW, "hold")],
            &[(NEW, "hold"), (NEW, "")],
            &[(NEW, "hold, hold")],
            &[(NEW, "hold"), (OLD, "x")],
            &[("x-other", "hold")],
        ] {
            assert_eq!(wish(headers), None, "{headers:?}");
        }
    }
}
