//! What the user sees: text on stdout and stderr, marks, colours, units.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

/// Nobody reads our stdout any more. No failure: the reader had enough.
#[derive(Debug)]
pub(crate) struct OutputClosed;

impl OutputClosed {
    /// What a shell shows for a program that a closed pipe ended.
    pub(crate) const CODE: u8 = 128 + 13;
}

impl std::fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stdout was closed")
    }
}

impl std::error::Error for OutputClosed {}

/// Writes to stdout.
///
/// # Errors
///
/// [`OutputClosed`], or why it could not be written.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        Err(error) => Err(anyhow::Error::new(error).context("stdout cannot be written")),
    }
}

/// Writes a value to stdout as indented JSON.
///
/// # Errors
///
/// As [`print`].
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// Tells something about Casemate itself on stderr.
pub(crate) fn note(text: &str) {
    let name = Paint::of(&io::stderr()).paint(Colour::Bold, "casemate:");
    line(&format!("{name} {}\n", visible(text)));
}

/// The same of several lines, the further ones indented.
pub(crate) fn note_lines(text: &str) {
    let name = Paint::of(&io::stderr()).paint(Colour::Bold, "casemate:");
    let lines: Vec<String> = text.lines().map(visible).collect();
    line(&format!("{name} {}\n", lines.join("\n  ").trim_end()));
}

/// Tells on stderr what would help against what was just noted.
pub(crate) fn fix(text: &str) {
    line(&format!("  fix: {}\n", visible(text)));
}

/// One write, so that the line is not torn by what a program writes. A stderr
/// that nobody reads is no reason to stop.
fn line(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Text that may hold what a program chose (names, messages), with its control
/// characters made visible.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // The last range are marks that reorder the text around them.
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A colour or weight of text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Colour {
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
}

/// Colours text where the stream shows colours and the user wants them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// For a stream: only a terminal, and not if `NO_COLOR` is set.
    pub(crate) fn of(stream: &impl io::IsTerminal) -> Self {
        let unwanted = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self(stream.is_terminal() && !unwanted("NO_COLOR") && !dumb)
    }

    /// For stdout.
    pub(crate) fn stdout() -> Self {
        Self::of(&io::stdout())
    }

    pub(crate) fn paint(self, colour: Colour, text: &str) -> String {
        if !self.0 {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Bold => 1,
            Colour::Dim => 2,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Red => 31,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Whether the locale's characters are those of Unicode. A pipe gets them too:
/// what reads it takes the same locale.
pub(crate) fn unicode() -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(std::env::var_os)
        .find(|value| !value.is_empty())
        .is_some_and(|value| {
            let value = value.to_string_lossy().to_ascii_lowercase();
            value.contains("utf-8") || value.contains("utf8")
        })
}

/// A size as people write it: `128M`, `1.5G`, `100 bytes`.
pub(crate) fn size(bytes: u64) -> String {
    for (unit, shift) in [("G", 30), ("M", 20), ("K", 10)] {
        let whole = bytes >> shift;
        if whole > 0 {
            let tenth = ((bytes - (whole << shift)) * 10) >> shift;
            return if tenth == 0 {
                format!("{whole}{unit}")
            } else {
                format!("{whole}.{tenth}{unit}")
            };
        }
    }
    format!("{bytes} bytes")
}

/// A time as people write it: `10s`, `1.5s`, `250ms`.
pub(crate) fn time(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        return format!("{}ms", time.as_millis());
    }
    // Rust prints as many digits as the number has.
    format!("{}s", (time.as_secs_f64() * 1000.0).round() / 1000.0)
}

/// A time in seconds since 1970 as a date: `2026-01-31 13:05 UTC`.
pub(crate) fn date(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Howard Hinnant's `civil_from_days`: years begin in March, so that the
    // day that leap years have more is their last.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// Rows of cells in columns that are as wide as their widest cell.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let cases = [
            (0, "1970-01-01 00:00 UTC"),
            (951_868_799, "2000-02-29 23:59 UTC"),
            (1_769_864_700, "2026-01-31 13:05 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
            (-1, "1969-12-31 23:59 UTC"),
        ];
        for (seconds, want) in cases {
            assert_eq!(date(seconds), want);
        }
    }

    #[test]
    fn units() {
        assert_eq!(size(128 << 20), "128M");
        assert_eq!(size(3 << 29), "1.5G");
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(time(Duration::from_secs(10)), "10s");
        assert_eq!(time(Duration::from_millis(1500)), "1.5s");
        assert_eq!(time(Duration::from_millis(250)), "250ms");
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(visible("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
        assert_eq!(visible("gpj.\u{202e}exe"), "gpj.\\u{202e}exe");
        assert_eq!(visible("täglich"), "täglich");
    }
}
