//! Moments and spans as protojson has them; `None` for those that it has no form for.
//!
//! Source: google/protobuf/timestamp.proto and duration.proto; RFC 3339.

use std::num::Saturating;

/// A moment in UTC, such as `2026-01-31T12:00:00.5Z` with 3, 6 or 9 digits of the fraction if it has one.
pub(super) fn timestamp(seconds: i64, nanos: i64) -> Option<String> {
    // The years 1 to 9999.
    let is_in_range = (-62_135_596_800..=253_402_300_799).contains(&seconds);
    if !is_in_range || !(0..1_000_000_000).contains(&nanos) {
        return None;
    }
    let [year, month, day] = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let fraction = fraction(nanos);
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"
    ))
}

/// A span in seconds, such as `-1.5s` with 3, 6 or 9 digits of the fraction if it has one.
pub(super) fn duration(seconds: i64, nanos: i64) -> Option<String> {
    // Ten thousand years.
    let is_in_range = (-315_576_000_000..=315_576_000_000).contains(&seconds)
        && (-999_999_999..=999_999_999).contains(&nanos);
    if !is_in_range || seconds.signum().saturating_mul(nanos.signum()) < 0 {
        return None;
    }
    let sign = if seconds < 0 || nanos < 0 { "-" } else { "" };
    let fraction = fraction(nanos.saturating_abs());
    let seconds = seconds.saturating_abs();
    Some(format!("{sign}{seconds}{fraction}s"))
}

fn fraction(nanos: i64) -> String {
    if nanos == 0 {
        String::new()
    } else if nanos % 1_000_000 == 0 {
        format!(".{:03}", nanos / 1_000_000)
    } else if nanos % 1_000 == 0 {
        format!(".{:06}", nanos / 1_000)
    } else {
        format!(".{nanos:09}")
    }
}

/// Year, month and day of a day since 1970-01-01 in the Gregorian calendar, counted in eras of 400 years that begin in
/// March, so that the day that some years have more is their last.
fn date(days: i64) -> [i64; 3] {
    let of = Saturating::<i64>;
    let days = of(days) + of(719_468);
    let era = of(days.0.div_euclid(146_097));
    let day = of(days.0.rem_euclid(146_097));
    let leap_days = of(day.0 / 1_460) - of(day.0 / 36_524) + of(day.0 / 146_096);
    let year = of((day - leap_days).0 / 365);
    let day = day - (of(365) * year + of(year.0 / 4) - of(year.0 / 100));
    // Months of 31, 30, 31, 30, 31 days take 153 days.
    let month = of((of(5) * day + of(2)).0 / 153);
    let day = day - of((of(153) * month + of(2)).0 / 5) + of(1);
    let is_next_year = month.0 >= 10;
    let month = if is_next_year {
        month - of(9)
    } else {
        month + of(3)
    };
    let year = year + era * of(400) + of(i64::from(is_next_year));
    [year.0, month.0, day.0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps() {
        for (seconds, nanos, text) in [
            (0, 0, "1970-01-01T00:00:00Z"),
            (-1, 999_999_999, "1969-12-31T23:59:59.999999999Z"),
            (951_782_400, 1_000_000, "2000-02-29T00:00:00.001Z"),
            (4_107_542_400, 1_000, "2100-03-01T00:00:00.000001Z"),
            (-62_135_596_800, 0, "0001-01-01T00:00:00Z"),
            (253_402_300_799, 10, "9999-12-31T23:59:59.000000010Z"),
        ] {
            assert_eq!(timestamp(seconds, nanos).as_deref(), Some(text));
        }
        for (seconds, nanos) in [
            (-62_135_596_801, 0),
            (253_402_300_800, 0),
            (i64::MIN, 0),
            (0, -1),
            (0, 1_000_000_000),
        ] {
            assert_eq!(timestamp(seconds, nanos), None);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut before = [0, 12, 31];
        for day in -719_162..=2_932_896 {
            let [year, month, day] = date(day);
            let [last_year, last_month, last_day] = before;
            let is_next = match (year == last_year, month == last_month) {
                (true, true) => day.checked_sub(1) == Some(last_day),
                (true, false) => month.checked_sub(1) == Some(last_month) && day == 1,
                (false, _) => {
                    year.checked_sub(1) == Some(last_year)
                        && [month, day] == [1, 1]
                        && [last_month, last_day] == [12, 31]
                }
            };
            let is_leap = last_year % 4 == 0 && (last_year % 100 != 0 || last_year % 400 == 0);
            let ends = match last_month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            assert!(
                is_next && (day != 1 || last_day == ends),
                "{before:?} {year}-{month}-{day}"
            );
            before = [year, month, day];
        }
        assert_eq!(before, [9_999, 12, 31]);
    }

    #[test]
    fn durations() {
        for (seconds, nanos, text) in [
            (0, 0, "0s"),
            (1, 500_000_000, "1.500s"),
            (-1, -500_000, "-1.000500s"),
            (0, -1, "-0.000000001s"),
            (315_576_000_000, 999_999_999, "315576000000.999999999s"),
        ] {
            assert_eq!(duration(seconds, nanos).as_deref(), Some(text));
        }
        for (seconds, nanos) in [
            (1, -1),
            (-1, 1),
            (315_576_000_001, 0),
            (i64::MIN, 0),
            (0, 1_000_000_000),
            (0, i64::MIN),
        ] {
            assert_eq!(duration(seconds, nanos), None);
        }
    }
}
