//! Dates, as far as the snapshot of advisories needs them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(pub(super) i64);

/// Today, in UTC.
pub(super) fn today() -> Day {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    Day(i64::try_from(seconds / 86_400).unwrap_or(0))
}

/// Reads `2026-01-31`.
pub(super) fn parse(text: &str) -> Option<Day> {
    let mut parts = text.split('-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let longest = match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if parts.next().is_some() || !(1970..=9999).contains(&year) || !(1..=longest).contains(&day) {
        return None;
    }
    // Years that begin in March, so that a leap day is their last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some(Day(days - 719_468))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_days() {
        let cases = [
            ("1970-01-01", Some(0)),
            ("1970-01-02", Some(1)),
            ("2000-02-29", Some(11_016)),
            ("2000-03-01", Some(11_017)),
            ("2026-01-31", Some(20_484)),
            ("2026-02-29", None),
            ("2026-13-01", None),
            ("2026-00-01", None),
            ("2026-1", None),
            ("2026-01-01-01", None),
            ("today", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text).map(|day| day.0), want, "{text}");
        }
        assert!(today() > parse("2025-01-01").unwrap());
    }
}
