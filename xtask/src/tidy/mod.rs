//! The project's own rules, as code.
//!
//! - [`tiers`]: which crate may use which, and where unsafe code may be.
//! - [`sources`]: what may not stand in a file, and how long it may be.
//! - [`links`]: links in Markdown lead somewhere.

mod links;
mod sources;
mod tiers;

use std::fmt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::steps::{Context, Outcome};

/// A broken rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// Where: a path, with a line where there is one.
    place: String,
    /// What is wrong, and what to do.
    what: String,
}

impl Finding {
    fn new(place: impl fmt::Display, what: impl Into<String>) -> Self {
        Self { place: place.to_string(), what: what.into() }
    }

    fn at_line(path: &Path, index: usize, what: impl Into<String>) -> Self {
        Self::new(format!("{}:{}", path.display(), index + 1), what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// A text file of the project.
struct Source {
    /// From the project's folder.
    path: PathBuf,
    text: String,
    executable: bool,
}

impl Source {
    fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|have| have == extension)
    }
}

/// Checks every rule.
pub(crate) fn step(context: &mut Context) -> anyhow::Result<Outcome> {
    let workspace = &context.workspace;
    let members = workspace.members()?;
    let mut files = Vec::new();
    for path in workspace.files()? {
        // What is not text has none of what is looked for.
        let full = workspace.root.join(&path);
        if let Ok(text) = std::fs::read_to_string(&full) {
            let executable = full.metadata()?.permissions().mode() & 0o111 != 0;
            files.push(Source { path, text, executable });
        }
    }

    let mut findings = tiers::check(&workspace.root, &members, &files)?;
    for file in &files {
        sources::check(file, &mut findings);
    }
    findings.extend(links::check(&workspace.root, &files));
    findings.extend(code_map(&files, members.iter().map(|member| member.path.as_str())));

    for finding in &findings {
        println!("{finding}");
    }
    anyhow::ensure!(findings.is_empty(), "{} broken rules", findings.len());
    Ok(Outcome::Passed {
        found: format!("{} crates, {} text files", members.len(), files.len()),
        warnings: files.iter().filter_map(sources::long).collect(),
    })
}

/// Every crate is on the map that a newcomer reads.
fn code_map<'a>(files: &[Source], members: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    const MAP: &str = "ARCHITECTURE.md";
    let map = files.iter().find(|file| file.path == Path::new(MAP));
    let map = map.map_or("", |file| file.text.as_str());
    members
        .filter(|path| !map.contains(&format!("`{path}`")) && !map.contains(&format!("`{path}/`")))
        .map(|path| Finding::new(MAP, format!("`{path}` is not in the code map")))
        .collect()
}

#[cfg(test)]
fn source(path: &str, text: &str) -> Source {
    Source { path: path.into(), text: text.into(), executable: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_off_the_map_is_found() {
        let files = [source("ARCHITECTURE.md", "- `pure/wire`: messages\n- `xtask/`: chores")];
        let found = code_map(&files, ["pure/wire", "xtask", "sys/linux"].into_iter());
        assert_eq!(found, [Finding::new("ARCHITECTURE.md", "`sys/linux` is not in the code map")]);
    }
}
