//! The list of system calls, `rules/seccomp/jail.toml`, as a filter.

use linux::seccomp::{Filter, Program, Rule, SeccompError, Test, Verdict};
use serde::Deserialize;

const LIST: &str = include_str!("../../../../rules/seccomp/jail.toml");

const EPERM: u16 = 1;
const ENOSYS: u16 = 38;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    version: u32,
    allow: Vec<Group>,
    #[serde(default)]
    allow_if_counted: Vec<Group>,
    refuse: Vec<Group>,
    when: Vec<When>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    #[serde(rename = "why")]
    _why: String,
    calls: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    #[serde(rename = "why")]
    _why: String,
    calls: Vec<String>,
    argument: u8,
    one_of: Option<Vec<u32>>,
    any_bit: Option<u32>,
    then: Action,
    r#else: Action,
    unless: Option<Unless>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Allow,
    Refuse,
}

#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unless {
    UserNamespaces,
}

impl From<Action> for Verdict {
    fn from(action: Action) -> Self {
        match action {
            Action::Allow => Self::Allow,
            Action::Refuse => Self::Fail(EPERM),
        }
    }
}

/// Why the list makes no filter.
#[derive(Debug, thiserror::Error)]
pub(super) enum RulesError {
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    #[error("version {0} of the list is not known")]
    Version(u32),
    #[error("a rule for {0:?} needs one of `one_of` and `any_bit`")]
    Test(Vec<String>),
    #[error("{0}")]
    Filter(#[from] SeccompError),
}

/// The compiled filter, and how many calls it allows.
pub(super) struct Compiled {
    pub(super) program: Program,
    pub(super) allowed: usize,
}

/// What the list makes exceptions for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exceptions {
    /// Programs may make namespaces of their own and `chroot` in them, as a
    /// browser's sandbox does.
    pub(super) user_namespaces: bool,
    /// A cgroup counts memory that belongs to no process.
    pub(super) counted: bool,
}

/// Makes the filter.
pub(super) fn filter(exceptions: Exceptions) -> Result<Compiled, RulesError> {
    let filter = build(LIST, exceptions)?;
    Ok(Compiled { program: filter.compile()?, allowed: filter.allowed() })
}

fn build(text: &str, exceptions: Exceptions) -> Result<Filter, RulesError> {
    let Exceptions { user_namespaces, counted } = exceptions;
    let list: List = toml::from_str(text)?;
    if list.version != 1 {
        return Err(RulesError::Version(list.version));
    }
    let mut filter = Filter::new(Verdict::Fail(ENOSYS));
    let conditional = list.allow_if_counted.iter().filter(|_| counted);
    for call in list.allow.iter().chain(conditional).flat_map(|group| &group.calls) {
        filter.add(call, Rule::Always(Verdict::Allow))?;
    }
    for call in list.refuse.iter().flat_map(|group| &group.calls) {
        let verdict = match call.as_str() {
            "chroot" if user_namespaces => Verdict::Allow,
            _ => Verdict::Fail(EPERM),
        };
        filter.add(call, Rule::Always(verdict))?;
    }
    for when in list.when {
        let test = match (when.one_of, when.any_bit) {
            (Some(values), None) => Test::OneOf(values),
            (None, Some(bits)) => Test::AnyBit(bits),
            _ => return Err(RulesError::Test(when.calls)),
        };
        let lifted = user_namespaces && when.unless == Some(Unless::UserNamespaces);
        for call in &when.calls {
            let rule = if lifted {
                Rule::Always(when.r#else.into())
            } else {
                Rule::If {
                    argument: when.argument,
                    test: test.clone(),
                    hit: when.then.into(),
                    miss: when.r#else.into(),
                }
            };
            filter.add(call, rule)?;
        }
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_compiles_with_and_without_user_namespaces() {
        for (user_namespaces, counted) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let compiled = filter(Exceptions { user_namespaces, counted }).unwrap();
            assert!(compiled.allowed > 250, "{}", compiled.allowed);
            assert!(compiled.program.len() < 1000, "{}", compiled.program.len());
        }
    }

    #[test]
    fn every_name_is_a_system_call_of_this_machine() {
        let list: List = toml::from_str(LIST).unwrap();
        let names = list
            .allow
            .iter()
            .chain(&list.refuse)
            .chain(&list.allow_if_counted)
            .flat_map(|group| &group.calls);
        let unknown: Vec<_> = names.filter(|name| linux::seccomp::number(name).is_none()).collect();
        if cfg!(target_arch = "x86_64") {
            assert!(unknown.is_empty(), "misspelled? {unknown:?}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            ("", "missing field"),
            ("version = 2\nallow = []\nrefuse = []\nwhen = []", "version 2"),
            (
                "version = 1\nallow = [{why = '', calls = ['read', 'read']}]\nrefuse = []\nwhen = []",
                "two rules",
            ),
            (
                "version = 1\nallow = []\nrefuse = []\n[[when]]\nwhy = ''\ncalls = ['ioctl']\nargument = 1\nthen = 'allow'\nelse = 'refuse'",
                "one_of",
            ),
        ];
        for (text, want) in cases {
            let error = build(text, Exceptions { user_namespaces: false, counted: true })
                .unwrap_err()
                .to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
