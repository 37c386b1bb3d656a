//! Limits of a sandbox, and the units people write them in.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// What a sandbox may use. Each is enforced from outside the sandbox, and
/// exceeding one ends the sandbox with the [`Limit`] as the named reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Wall-clock time, counted from the start of the first process. Time
    /// spent paused counts. Default 10 s.
    pub wall_time: Duration,
    /// Share of processor time: 1.0 is one whole CPU. A sandbox that wants more
    /// is slowed down, not ended. Default 0.5.
    pub cpus: f64,
    /// Processor time of all processes together. Default: none beyond what
    /// `wall_time` and `cpus` leave.
    pub cpu_time: Option<Duration>,
    /// Memory of all processes and of files written, in bytes. Default 128 MiB.
    pub memory: u64,
    /// Processes and threads alive at once. Default 64.
    pub processes: u32,
    /// Largest single file, in bytes. Default: as large as `disk`.
    pub file_size: Option<u64>,
    /// All files written, in bytes. Default 64 MiB.
    pub disk: u64,
    /// Descriptors open at once in one process. Default 1024.
    pub open_files: u64,
    /// Bytes of stdout, stderr and terminal output together. Default 64 KiB.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall_time: Duration::from_secs(10),
            cpus: 0.5,
            cpu_time: None,
            memory: 128 * MIB,
            processes: 64,
            file_size: None,
            disk: 64 * MIB,
            open_files: 1024,
            output: 64 * KIB,
        }
    }
}

impl Limits {
    /// Checks that each value can be enforced.
    ///
    /// # Errors
    ///
    /// [`LimitError::OutOfRange`] names the limit, its value and its bounds.
    pub fn check(&self) -> Result<(), LimitError> {
        let in_range = |limit, value: u64, min: u64, max: u64| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(LimitError::OutOfRange {
                    limit,
                    value: value.to_string(),
                    min: min.to_string(),
                    max: max.to_string(),
                })
            }
        };
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        const DAY_MS: u64 = 24 * 3600 * 1000;
        in_range("wall time (ms)", millis(self.wall_time), 1, DAY_MS)?;
        if let Some(time) = self.cpu_time {
            in_range("CPU time (ms)", millis(time), 1, DAY_MS)?;
        }
        if !(0.01..=1024.0).contains(&self.cpus) {
            return Err(LimitError::OutOfRange {
                limit: "CPUs",
                value: self.cpus.to_string(),
                min: "0.01".into(),
                max: "1024".into(),
            });
        }
        in_range("memory (bytes)", self.memory, 4 * MIB, 1024 * GIB)?;
        in_range("processes", self.processes.into(), 1, 32 * KIB)?;
        if let Some(size) = self.file_size {
            in_range("file size (bytes)", size, 1, 1024 * GIB)?;
        }
        in_range("disk (bytes)", self.disk, MIB, 1024 * GIB)?;
        in_range("open files", self.open_files, 16, MIB)?;
        in_range("output (bytes)", self.output, 1, GIB)
    }
}

/// The limit that ended a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// [`Limits::wall_time`].
    WallTime,
    /// [`Limits::cpu_time`].
    CpuTime,
    /// [`Limits::memory`].
    Memory,
    /// [`Limits::processes`].
    Processes,
    /// [`Limits::file_size`].
    FileSize,
    /// [`Limits::disk`].
    Disk,
    /// [`Limits::output`].
    Output,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WallTime => "wall-clock time",
            Self::CpuTime => "CPU time",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::FileSize => "file size",
            Self::Disk => "disk",
            Self::Output => "output",
        })
    }
}

/// Why a limit cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The value lies outside what can be enforced.
    #[error("{limit} is {value}; it must lie between {min} and {max}")]
    OutOfRange {
        /// Which limit, with its unit.
        limit: &'static str,
        /// The value that was given.
        value: String,
        /// The smallest value that can be used.
        min: String,
        /// The largest value that can be used.
        max: String,
    },
    /// The text is not a number with a unit.
    #[error("`{text}` is not a {what}: write a number and a unit, like {example}")]
    Syntax {
        /// The text that was given.
        text: String,
        /// `size` or `time`.
        what: &'static str,
        /// Texts that would do.
        example: &'static str,
    },
}

/// Reads a size in bytes: `128M`, `64KiB`, `1.5G`, `4096`.
///
/// Units are powers of 1024, in any case, with or without `B` or `iB`; no unit
/// means bytes.
///
/// # Errors
///
/// [`LimitError::Syntax`] if the text is not a non-negative number with one of
/// these units, or is too large.
///
/// ```
/// assert_eq!(sandbox::parse_size("128M"), Ok(128 << 20));
/// assert!(sandbox::parse_size("12 parsecs").is_err());
/// ```
pub fn parse_size(text: &str) -> Result<u64, LimitError> {
    let error =
        || LimitError::Syntax { text: text.into(), what: "size", example: "64K, 128M or 1G" };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        "t" | "tb" | "tib" => 1024 * GIB,
        _ => return Err(error()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(error);
    }
    let bytes = number.parse::<f64>().map_err(|_| error())? * factor as f64;
    if bytes.is_finite() && (0.0..9.0e15).contains(&bytes) {
        // In range, so the fraction of a byte is all that is cut.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Ok(bytes as u64)
    } else {
        Err(error())
    }
}

/// Reads a time: `10s`, `500ms`, `2m`, `1h`, `1.5`; no unit means seconds.
///
/// # Errors
///
/// [`LimitError::Syntax`] if the text is not a non-negative number with one of
/// these units, or is more than ten years.
///
/// ```
/// # use std::time::Duration;
/// assert_eq!(sandbox::parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, LimitError> {
    let error =
        || LimitError::Syntax { text: text.into(), what: "time", example: "500ms, 10s or 2m" };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "s" | "sec" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(error()),
    };
    let seconds = number.parse::<f64>().map_err(|_| error())? * factor;
    const TEN_YEARS: f64 = 3.2e8;
    if !(0.0..TEN_YEARS).contains(&seconds) {
        return Err(error());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| error())
}

/// Splits `12.5 MiB` into its number and its unit.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (!number.is_empty()).then(|| (number, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let cases = [
            ("0", Ok(0)),
            ("4096", Ok(4096)),
            ("64K", Ok(65536)),
            ("64 KiB", Ok(65536)),
            ("128mb", Ok(134_217_728)),
            ("1.5G", Ok(1_610_612_736)),
            ("", Err(())),
            ("M", Err(())),
            ("-1M", Err(())),
            ("1.2.3M", Err(())),
            ("99999999999999999999T", Err(())),
            ("12q", Err(())),
        ];
        for (text, want) in cases {
            assert_eq!(parse_size(text).map_err(|_| ()), want, "{text:?}");
        }
    }

    #[test]
    fn times() {
        let cases = [
            ("10", Ok(10_000)),
            ("10s", Ok(10_000)),
            ("0.25s", Ok(250)),
            ("250ms", Ok(250)),
            ("2m", Ok(120_000)),
            ("1h", Ok(3_600_000)),
            ("ten", Err(())),
            ("-1s", Err(())),
            ("1d", Err(())),
            ("1e9", Err(())),
            ("99999999h", Err(())),
        ];
        for (text, want) in cases {
            assert_eq!(
                parse_duration(text).map(|t| t.as_millis()).map_err(|_| ()),
                want,
                "{text:?}"
            );
        }
    }

    #[test]
    fn limits_out_of_range_are_named() {
        assert_eq!(Limits::default().check(), Ok(()));
        let zero = Limits { wall_time: Duration::ZERO, ..Limits::default() };
        assert_eq!(
            zero.check().unwrap_err().to_string(),
            "wall time (ms) is 0; it must lie between 1 and 86400000"
        );
        let nan = Limits { cpus: f64::NAN, ..Limits::default() };
        assert!(nan.check().is_err());
    }
}
