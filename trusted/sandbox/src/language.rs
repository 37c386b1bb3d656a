//! Languages that code may be handed over in, and how each is run.

use std::fmt;
use std::str::FromStr;

use crate::spec::{Contents, FileToPut, GuestPath};

/// The most code that is handed over as an argument, in bytes. Longer code is
/// put into a file: Linux takes at most 128 KiB in one argument.
const MAX_ARGUMENT: usize = 96 * 1024;

/// A language of code that is run without a file of the caller's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// `python3`. The default.
    #[default]
    Python,
    /// `node`.
    Node,
    /// `bash`.
    Bash,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Python, Self::Node, Self::Bash];

    /// Its first name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Bash => "bash",
        }
    }

    /// The program that runs it, to be looked up in the sandbox's `PATH`.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Node => "node",
            Self::Bash => "bash",
        }
    }

    /// Guesses from the extension of a file's name or path.
    ///
    /// ```
    /// # use sandbox::Language;
    /// assert_eq!(Language::from_file_name("src/app.mjs"), Some(Language::Node));
    /// assert_eq!(Language::from_file_name("Makefile"), None);
    /// ```
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let (stem, extension) = name.rsplit('/').next()?.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        match extension.to_ascii_lowercase().as_str() {
            "py" | "pyw" => Some(Self::Python),
            "js" | "mjs" | "cjs" => Some(Self::Node),
            "sh" | "bash" => Some(Self::Bash),
            _ => None,
        }
    }

    /// Guesses from the `#!` line at the start of `code`; versions in the
    /// interpreter's name (`python3.12`) do not matter.
    ///
    /// ```
    /// # use sandbox::Language;
    /// assert_eq!(Language::from_shebang("#!/usr/bin/env python3\n"), Some(Language::Python));
    /// ```
    #[must_use]
    pub fn from_shebang(code: &str) -> Option<Self> {
        let line = code.strip_prefix("#!")?.lines().next()?;
        let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
        let mut words = line.split_whitespace();
        let mut program = base(words.next()?);
        if program == "env" {
            // `env` takes options (-S) and assignments before the program.
            program = base(words.find(|word| !word.starts_with('-') && !word.contains('='))?);
        }
        match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "python" | "pypy" => Some(Self::Python),
            "node" | "nodejs" => Some(Self::Node),
            "bash" | "sh" | "dash" => Some(Self::Bash),
            _ => None,
        }
    }

    /// How `code` is run with `args`: the argument vector and, for code that
    /// does not fit into an argument, the file to put into the sandbox first.
    ///
    /// Neither code nor arguments that begin with `-` are taken for options of
    /// the interpreter.
    ///
    /// # Panics
    ///
    /// Never: the file's path is a valid one.
    ///
    /// ```
    /// # use sandbox::Language;
    /// let (argv, file) = Language::Python.invocation("print(1)", &["-v".to_owned()]);
    /// assert_eq!(argv, ["python3", "-c", "print(1)", "-v"]);
    /// assert!(file.is_none());
    /// ```
    #[must_use]
    pub fn invocation(self, code: &str, args: &[String]) -> (Vec<String>, Option<FileToPut>) {
        let mut argv = vec![self.program().to_owned()];
        // An argument cannot hold a NUL; the interpreter shall say what it
        // thinks of one.
        if code.len() > MAX_ARGUMENT || code.contains('\0') {
            let path = self.file();
            argv.push(path.as_str().to_owned());
            argv.extend_from_slice(args);
            let contents = Contents::Bytes(bytes::Bytes::copy_from_slice(code.as_bytes()));
            return (argv, Some(FileToPut { path, contents, mode: 0o644 }));
        }
        match self {
            Self::Python => argv.extend(["-c".into(), code.into()]),
            // `-e CODE` refuses code that begins with `-`, and any spelling
            // refuses code of no length at all.
            Self::Node if code.is_empty() => argv.extend(["--eval=;".into(), "--".into()]),
            Self::Node => argv.extend([format!("--eval={code}"), "--".into()]),
            // The word after the code is `$0`.
            Self::Bash => argv.extend(["-c".into(), "--".into(), code.into(), "bash".into()]),
        }
        argv.extend_from_slice(args);
        (argv, None)
    }

    /// Where [`Language::invocation`] puts code that needs a file.
    fn file(self) -> GuestPath {
        let name = match self {
            Self::Python => "main.py",
            Self::Node => "main.js",
            Self::Bash => "main.sh",
        };
        GuestPath::new(name).expect("a name in the home is a path")
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "python" | "python3" | "py" => Ok(Self::Python),
            "node" | "javascript" | "js" => Ok(Self::Node),
            "bash" | "sh" => Ok(Self::Bash),
            _ => Err(UnknownLanguage(text.to_owned())),
        }
    }
}

/// A name that is none of the languages'.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no language is called `{0}`: choose python, node, javascript or bash")]
pub struct UnknownLanguage(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let cases = [
            ("python", Some(Language::Python)),
            ("python3", Some(Language::Python)),
            ("py", Some(Language::Python)),
            ("node", Some(Language::Node)),
            ("javascript", Some(Language::Node)),
            ("js", Some(Language::Node)),
            ("bash", Some(Language::Bash)),
            ("sh", Some(Language::Bash)),
            ("Python", None),
            ("", None),
            ("cobol", None),
        ];
        for (name, want) in cases {
            assert_eq!(name.parse::<Language>().ok(), want, "{name}");
        }
        for language in Language::ALL {
            assert_eq!(language.to_string().parse(), Ok(language));
        }
    }

    #[test]
    fn guesses() {
        let files = [
            ("a.py", Some(Language::Python)),
            ("/x/y.JS", Some(Language::Node)),
            ("a.tar.sh", Some(Language::Bash)),
            (".sh", None),
            ("dir.py/file", None),
            ("noext", None),
        ];
        for (name, want) in files {
            assert_eq!(Language::from_file_name(name), want, "{name}");
        }
        let shebangs = [
            ("#!/usr/bin/python3.12 -u\nx", Some(Language::Python)),
            ("#! /usr/bin/env -S node --no-warnings", Some(Language::Node)),
            ("#!/usr/bin/env X=1 bash", Some(Language::Bash)),
            ("#!/bin/sh", Some(Language::Bash)),
            ("#!/usr/bin/perl", None),
            ("#!", None),
            ("#!/usr/bin/env", None),
            ("print(1)", None),
        ];
        for (code, want) in shebangs {
            assert_eq!(Language::from_shebang(code), want, "{code}");
        }
    }

    #[test]
    fn code_that_fits_no_argument_goes_into_a_file() {
        let long = "#".repeat(MAX_ARGUMENT + 1);
        let cases = [
            (Language::Python, long.as_str(), Some("/home/user/main.py")),
            (Language::Node, long.as_str(), Some("/home/user/main.js")),
            (Language::Bash, "echo \0", Some("/home/user/main.sh")),
            (Language::Bash, &long[1..], None),
        ];
        for (language, code, want) in cases {
            let (argv, file) = language.invocation(code, &["a".into()]);
            assert_eq!(file.as_ref().map(|file| file.path.as_str()), want, "{language}");
            if let Some(file) = file {
                assert_eq!(argv, [language.program(), file.path.as_str(), "a"]);
            }
        }
    }
}
