//! What may not stand in a file, and how long one may be.

use super::{Finding, Source};

/// Past this, a Rust file holds two ideas.
const LONGEST: usize = 1000;
/// Past this, look for the second.
const LONG: usize = 600;

// Written in two halves, so that this file does not break its own rules.
const UNFINISHED: [&str; 2] = [concat!("to", "do!"), concat!("unimple", "mented!")];
/// Folders of the machines that the project is developed on.
const MACHINES: [&str; 4] = [
    concat!("/wo", "rk/main"),
    concat!("/wo", "rk/shared"),
    concat!("/wo", "rk/target"),
    concat!("/fa", "rm/"),
];

pub(super) fn check(file: &Source, findings: &mut Vec<Finding>) {
    let is_rust = file.has_extension("rs");
    for (index, line) in file.text.lines().enumerate() {
        let mut found = |what: String| findings.push(Finding::at_line(&file.path, index, what));
        for folder in MACHINES.iter().filter(|folder| names(line, folder)) {
            found(format!("`{folder}` is a folder of one machine: name it some other way"));
        }
        for word in UNFINISHED.iter().filter(|word| is_rust && line.contains(*word)) {
            found(format!("`{word}`: finish it, or return an error that says so"));
        }
        if line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ") {
            found("a merge was not finished".into());
        }
    }
    let lines = file.text.lines().count();
    if is_rust && lines > LONGEST {
        let what = format!("{lines} lines, more than {LONGEST}: split it");
        findings.push(Finding::new(file.path.display(), what));
    }
    // In Rust, `#!` starts an attribute.
    if file.text.starts_with("#!/") && !is_rust && !file.executable {
        let what = "a file that begins with `#!` is to be executable: chmod +x";
        findings.push(Finding::new(file.path.display(), what));
    }
}

/// Says that a file is on its way to being too long.
pub(super) fn long(file: &Source) -> Option<String> {
    let lines = file.text.lines().count();
    (file.has_extension("rs") && lines > LONG)
        .then(|| format!("{}: {lines} lines, more than {LONG}", file.path.display()))
}

/// Whether `line` names an absolute path that begins with `folder`; `a/b/c`
/// does not begin with `/b/`.
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}~>*$".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn what_may_not_stand_in_a_file() {
        let unfinished = format!("fn f() {{ {}() }}\n", UNFINISHED[0]);
        let machine = format!("see {}/x\n", MACHINES[0]);
        let start = format!("{}main\n", MACHINES[3]);
        let within = format!("a{}/b, ..{}/b\n", MACHINES[0], MACHINES[0]);
        let longest = "\n".repeat(LONGEST);
        let too_long = "\n".repeat(LONGEST + 1);
        let cases = [
            ("unfinished Rust", "a.rs", unfinished.as_str(), 1),
            ("the same word in a text", "a.md", unfinished.as_str(), 0),
            ("a folder of a machine", "a.md", machine.as_str(), 1),
            ("at the start of a line", "a.md", start.as_str(), 1),
            ("a relative path", "a.md", within.as_str(), 0),
            ("a merge", "a.toml", "<<<<<<< HEAD\n", 1),
            ("long", "a.rs", longest.as_str(), 0),
            ("too long", "a.rs", too_long.as_str(), 1),
            ("a long text", "a.md", too_long.as_str(), 0),
            ("a script that cannot be executed", "run", "#!/bin/sh\n", 1),
        ];
        for (name, path, text, want) in cases {
            let mut findings = Vec::new();
            check(&source(path, text), &mut findings);
            assert_eq!(findings.len(), want, "{name}");
        }
        let mut findings = Vec::new();
        check(&Source { executable: true, ..source("run", "#!/bin/sh\n") }, &mut findings);
        assert_eq!(findings, []);
    }

    #[test]
    fn long_files_are_warned_of() {
        assert!(long(&source("a.rs", &"\n".repeat(LONG))).is_none());
        assert!(long(&source("a.rs", &"\n".repeat(LONG + 1))).is_some());
        assert!(long(&source("a.md", &"\n".repeat(LONG + 1))).is_none());
    }
}
