//! Parsers of values that have names, so that help, completions and errors
//! list them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use sandbox::{Language, NetworkPolicy, WallChoice};
use server::LogFormat;

fn names<T>(
    values: impl IntoIterator<Item = PossibleValue>,
    parse: fn(&str) -> T,
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(values).map(move |name| parse(&name))
}

/// Languages of code.
pub(super) fn languages() -> impl TypedValueParser<Value = Language> {
    let values = [
        PossibleValue::new("python").aliases(["python3", "py"]),
        PossibleValue::new("node").aliases(["javascript", "js"]),
        PossibleValue::new("bash").alias("sh"),
    ];
    names(values, |name| name.parse().unwrap_or_default())
}

/// Walls, or the choice of one.
pub(super) fn walls() -> impl TypedValueParser<Value = WallChoice> {
    let values = ["auto", "jail", "fork", "vm"].map(PossibleValue::new);
    names(values, |name| name.parse().unwrap_or_default())
}

/// Networks that a sandbox can reach.
pub(super) fn networks() -> impl TypedValueParser<Value = NetworkPolicy> {
    names([PossibleValue::new("none")], |_| NetworkPolicy::None)
}

/// Ways to write log lines.
pub(super) fn log_formats() -> impl TypedValueParser<Value = LogFormat> {
    names(["text", "json"].map(PossibleValue::new), |name| name.parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that its type does not know would silently become the default.
    #[test]
    fn each_name_is_one_of_its_type() {
        fn check<T>(parser: &impl TypedValueParser<Value = T>)
        where
            T: std::str::FromStr + Clone + Send + Sync + 'static,
        {
            for value in parser.possible_values().unwrap() {
                for name in value.get_name_and_aliases() {
                    assert!(name.parse::<T>().is_ok(), "{name}");
                }
            }
        }
        check(&languages());
        check(&walls());
        check(&log_formats());
    }
}
