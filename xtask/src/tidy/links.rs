//! Links in Markdown: those to files of the project lead somewhere.

use std::path::{Component, Path, PathBuf};

use super::{Finding, Source};

pub(super) fn check(root: &Path, files: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.has_extension("md")) {
        for (index, target) in targets(&file.text) {
            if let Err(what) = resolve(root, files, file, target) {
                findings.push(Finding::at_line(&file.path, index, format!("({target}): {what}")));
            }
        }
    }
    findings
}

/// The targets of all links, each with the index of its line. What stands in
/// code is none.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second piece stands between backquotes.
        for (piece_index, piece) in line.split('`').enumerate() {
            // A link's text may be code: then its target begins a piece.
            let rest = if piece_index % 2 == 0 { piece } else { continue };
            for (at, _) in rest.match_indices("](") {
                let target = &rest[at + 2..];
                if let Some(end) = target.find([')', ' ']) {
                    found.push((index, &target[..end]));
                }
            }
        }
    }
    found
}

fn resolve(root: &Path, files: &[Source], from: &Source, target: &str) -> Result<(), String> {
    let elsewhere = ["https://", "http://", "mailto:"];
    if elsewhere.iter().any(|scheme| target.starts_with(scheme)) {
        return Ok(());
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = from.path.parent().unwrap_or(Path::new(""));
    let path = match path {
        "" => from.path.clone(),
        _ => within(&folder.join(path)).ok_or("it leads out of the project")?,
    };
    if !root.join(&path).exists() && !files.iter().any(|file| file.path == path) {
        return Err("there is no such file".into());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let Some(target) = files.iter().find(|file| file.path == path) else { return Ok(()) };
    // Of other files, a line (`#L10`) may be meant.
    if target.has_extension("md") && !headings(&target.text).any(|heading| heading == anchor) {
        return Err("there is no such heading".into());
    }
    Ok(())
}

/// A path without `.` and `..`; none if it leaves the project.
fn within(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

/// The anchors of a text's headings, as GitHub makes them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn links_lead_somewhere() {
        let files = [
            source("README.md", ""),
            source("docs/jail.md", "# The jail\n## What's in `force`?\n"),
            source("docs/code.rs", ""),
        ];
        let cases = [
            ("[a](jail.md)", 0),
            ("[a](./../README.md)", 0),
            ("[a](jail.md#the-jail), [b](jail.md#whats-in-force)", 0),
            ("[a](https://example.org/x)", 0),
            ("[`code`](code.rs#L10)", 0),
            ("`[a](nothing.md)`", 0),
            ("```\n[a](nothing.md)\n```", 0),
            ("[a](nothing.md)", 1),
            ("[a](jail.md) and [b](nothing.md)", 1),
            ("[`code`](nothing.rs)", 1),
            ("[a](jail.md#the-wall)", 1),
            ("[a](#here)", 1),
            ("# Here\n[a](#here)", 0),
            ("[a](../../outside.md)", 1),
            ("[a](/README.md)", 1),
        ];
        for (text, want) in cases {
            let file = source("docs/a.md", text);
            let mut all = vec![file];
            all.extend(files.iter().map(|file| source(&file.path.to_string_lossy(), &file.text)));
            let found = check(Path::new("/nowhere"), &all);
            assert_eq!(found.len(), want, "{text:?}: {found:?}");
        }
    }
}
