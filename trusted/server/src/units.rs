//! Sizes and times as people write them in JSON and TOML: a number, or a text
//! with a unit.

use std::fmt;
use std::time::Duration;

use sandbox::{parse_duration, parse_size};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// A number of bytes: `1048576` or `"1M"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A length of time: a number of seconds, or a text like `"500ms"` or `"2m"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;

        impl Visitor<'_> for SizeVisitor {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes, or a text like \"64K\", \"128M\" or \"1G\"")
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
                Ok(Size(bytes))
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
                u64::try_from(bytes)
                    .map(Size)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(bytes), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                parse_size(text).map(Size).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(SizeVisitor)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;

        impl Visitor<'_> for TimeVisitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of seconds, or a text like \"500ms\", \"10s\" or \"2m\"")
            }

            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Time, E> {
                Ok(Time(Duration::from_secs(seconds)))
            }

            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Time, E> {
                u64::try_from(seconds)
                    .map(|seconds| Time(Duration::from_secs(seconds)))
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(seconds), &self))
            }

            fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Time, E> {
                Duration::try_from_secs_f64(seconds)
                    .map(Time)
                    .map_err(|_| E::invalid_value(de::Unexpected::Float(seconds), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                parse_duration(text).map(Time).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(TimeVisitor)
    }
}

impl PartialSchema for Size {
    fn schema() -> RefOr<Schema> {
        either(Type::Integer, "A number of bytes, or a text like `64K`, `128M` or `1G`.")
    }
}

impl ToSchema for Size {}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        either(Type::Number, "A number of seconds, or a text like `500ms`, `10s` or `2m`.")
    }
}

impl ToSchema for Time {}

/// The schema of a number that may be a text too.
fn either(number: Type, description: &str) -> RefOr<Schema> {
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(number).minimum(Some(0)))
        .item(ObjectBuilder::new().schema_type(Type::String))
        .description(Some(description))
        .into()
}

/// Reads a [`Duration`] field as a [`Time`]; for `deserialize_with`.
pub(crate) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Time::deserialize(deserializer).map(|time| time.0)
}

/// Reads a field in bytes as a [`Size`]; for `deserialize_with`.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Size::deserialize(deserializer).map(|size| size.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        let sizes = [
            ("1024", Some(1024)),
            ("\"64K\"", Some(65536)),
            ("-1", None),
            ("1.5", None),
            ("\"lots\"", None),
            ("null", None),
        ];
        for (json, want) in sizes {
            let got = serde_json::from_str::<Size>(json).ok().map(|size| size.0);
            assert_eq!(got, want, "{json}");
        }
        let times = [
            ("30", Some(30_000)),
            ("0.25", Some(250)),
            ("\"500ms\"", Some(500)),
            ("-1", None),
            ("-0.5", None),
            ("1e300", None),
            ("true", None),
        ];
        for (json, want) in times {
            let got = serde_json::from_str::<Time>(json).ok().map(|time| time.0.as_millis());
            assert_eq!(got, want, "{json}");
        }
    }
}
