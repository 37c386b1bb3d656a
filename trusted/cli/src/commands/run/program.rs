//! Which program is run: from code, a file, stdin or a command.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use sandbox::{Contents, FileToPut, GuestPath, Language};

use super::args::RunArgs;
use crate::failure::Failure;

/// The most code that is taken from stdin or a file, in bytes.
const MAX_CODE: u64 = 64 << 20;

/// A program to run in a sandbox.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) argv: Vec<String>,
    /// What has to be in the sandbox for that.
    pub(super) file: Option<FileToPut>,
    /// Whether stdin is left for the program to read.
    pub(super) reads_stdin: bool,
}

impl Program {
    /// Finds out from the command line `words` that `args` were parsed from.
    /// For `-`, reads stdin to its end.
    pub(super) fn find(args: &RunArgs, words: &[OsString]) -> Result<Self, Failure> {
        if let Some(code) = &args.code {
            return Ok(Self::code(args.lang.unwrap_or_default(), code, &args.rest, true));
        }
        let Some((first, others)) = args.rest.split_first() else {
            return Err(Failure::new("there is nothing to run")
                .fix("casemate run -c CODE, or FILE, or - for code on stdin, or -- CMD"));
        };
        if after_dashes(&args.rest, words) {
            if let Some(language) = args.lang {
                return Err(Failure::new(format!("--lang {language} does not go with `-- CMD`"))
                    .fix(format!("casemate run --lang {language} FILE, or without --lang")));
            }
            return Ok(Self { argv: args.rest.clone(), file: None, reads_stdin: true });
        }
        if first == "-" {
            let code = read_stdin()?;
            let language = args.lang.or_else(|| Language::from_shebang(&code)).unwrap_or_default();
            return Ok(Self::code(language, &code, others, false));
        }
        Self::file(args.lang, Path::new(first), others)
    }

    fn code(language: Language, code: &str, arguments: &[String], reads_stdin: bool) -> Self {
        let (argv, file) = language.invocation(code, arguments);
        Self { argv, file, reads_stdin }
    }

    /// A file of the host, put into the home under its own name, so that the
    /// program finds itself where tracebacks and `__file__` say.
    fn file(
        language: Option<Language>,
        path: &Path,
        arguments: &[String],
    ) -> Result<Self, Failure> {
        let shown = path.display();
        let bytes = read_file(path).map_err(|error| {
            let failure = Failure::new(format!("{shown} cannot be read: {error}"));
            // A command without the dashes looks like a file.
            if error.kind() == std::io::ErrorKind::NotFound && path.components().count() == 1 {
                failure.fix(format!("to run a command: casemate run -- {shown}"))
            } else {
                failure
            }
        })?;
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
            Failure::new(format!("the name of {shown} is not UTF-8")).fix("rename it, or use -")
        })?;
        let guest = GuestPath::new(GuestPath::HOME)
            .and_then(|home| home.join(name))
            .map_err(|error| Failure::new(format!("{shown}: {error}")))?;

        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
        let language = language
            .or_else(|| Language::from_file_name(name))
            .or_else(|| Language::from_shebang(&head));
        let mut argv = Vec::with_capacity(arguments.len() + 2);
        match language {
            Some(language) => argv.push(language.program().to_owned()),
            // The kernel knows what to do with these.
            None if bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF") => {}
            None => {
                return Err(Failure::new(format!("the language of {shown} cannot be told"))
                    .fix("name it with --lang python, node or bash"));
            }
        }
        argv.push(guest.as_str().to_owned());
        argv.extend_from_slice(arguments);
        let file = FileToPut { path: guest, contents: Contents::Bytes(bytes), mode: 0o755 };
        Ok(Self { argv, file: Some(file), reads_stdin: true })
    }
}

/// Whether `rest`, the end of the command line `words`, stood behind `--`.
fn after_dashes(rest: &[String], words: &[OsString]) -> bool {
    words
        .len()
        .checked_sub(rest.len() + 1)
        .and_then(|before| words.get(before))
        .is_some_and(|word| word == "--")
}

/// Reads code from stdin, to its end.
fn read_stdin() -> Result<String, Failure> {
    let mut code = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_CODE + 1)
        .read_to_end(&mut code)
        .map_err(|error| Failure::new(format!("stdin cannot be read: {error}")))?;
    if code.len() as u64 > MAX_CODE {
        return Err(Failure::new("the code on stdin is longer than 64M"));
    }
    String::from_utf8(code).map_err(|_| Failure::new("the code on stdin is not UTF-8"))
}

/// Reads a file of code. A pipe will do (`<(…)` in a shell), a directory not.
fn read_file(path: &Path) -> std::io::Result<Bytes> {
    let mut code = Vec::new();
    File::open(path)?.take(MAX_CODE + 1).read_to_end(&mut code)?;
    if code.len() as u64 > MAX_CODE {
        return Err(std::io::Error::other("it is longer than 64M"));
    }
    Ok(code.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn find(words: &[&str]) -> Result<Program, String> {
        let words: Vec<OsString> =
            ["casemate", "run"].iter().chain(words).map(Into::into).collect();
        let Command::Run(args) = Cli::try_parse_from(&words).unwrap().command else {
            panic!("not run")
        };
        Program::find(&args, &words).map_err(|failure| failure.to_string())
    }

    #[test]
    fn code_and_commands() {
        let cases: [(&[&str], &[&str]); 6] = [
            (&["-c", "1", "--", "-x"], &["python3", "-c", "1", "-x"]),
            (&["--lang", "bash", "-c", "ls", "a"], &["bash", "-c", "--", "ls", "bash", "a"]),
            (&["--lang", "js", "-c", "1"], &["node", "--eval=1", "--"]),
            (&["--", "ls", "-l"], &["ls", "-l"]),
            (&["--", "-"], &["-"]),
            (&["--json", "--", "x", "--", "y"], &["x", "--", "y"]),
        ];
        for (words, argv) in cases {
            assert_eq!(find(words).unwrap().argv, argv, "{words:?}");
        }
    }

    #[test]
    fn files() {
        let dir = tempfile::tempdir().unwrap();
        let cases = [
            // name       contents                  flags             argv before the path, or the error
            ("a.py", "1", "", Ok("python3")),
            ("b.mjs", "1", "", Ok("node")),
            ("c", "#!/usr/bin/env bash\n", "", Ok("bash")),
            ("d", "#!/usr/bin/perl\n", "", Ok("")),
            ("e", "\u{7f}ELF", "", Ok("")),
            ("f.txt", "1", "--lang=node", Ok("node")),
            ("g.txt", "1", "", Err("cannot be told")),
        ];
        for (name, contents, flags, want) in cases {
            let path = dir.path().join(name);
            std::fs::write(&path, contents).unwrap();
            let path = path.to_str().unwrap();
            let words: Vec<&str> = flags.split_whitespace().chain([path, "-v", "--"]).collect();
            match (find(&words), want) {
                (Ok(program), Ok(interpreter)) => {
                    let guest = format!("/home/user/{name}");
                    let argv: Vec<&str> = interpreter
                        .split_whitespace()
                        .chain([guest.as_str(), "-v", "--"])
                        .collect();
                    assert_eq!(program.argv, argv, "{name}");
                    assert_eq!(program.file.unwrap().path.as_str(), guest);
                }
                (Err(error), Err(want)) => assert!(error.contains(want), "{name}: {error}"),
                (got, _) => panic!("{name}: {got:?}"),
            }
        }
        assert!(find(&[dir.path().to_str().unwrap()]).unwrap_err().contains("cannot be read"));
        assert!(find(&["no-such-file.py"]).unwrap_err().contains("cannot be read"));
        assert!(find(&[]).unwrap_err().contains("nothing to run"));
        assert!(find(&["--lang", "node", "--", "ls"]).unwrap_err().contains("--lang"));
    }
}
