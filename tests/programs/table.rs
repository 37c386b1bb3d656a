//! The programs, what each needs, and what is expected of it.

/// One program.
pub(crate) struct Case {
    /// Its file in `cases/`; the name's ending names its language.
    pub(crate) file: &'static str,
    /// Programs that it runs, and Python modules as `python:NAME`: where the
    /// host is without one, the case is skipped visibly.
    pub(crate) needs: &'static [&'static str],
    /// Options of `casemate run` that it needs, for which the defaults are too
    /// small.
    pub(crate) options: &'static [(&'static str, &'static str)],
    /// What it reads.
    pub(crate) stdin: &'static str,
    /// What is expected.
    pub(crate) expected: Expected,
}

/// What is expected of a program in a sandbox.
pub(crate) enum Expected {
    /// Its stdout and exit code on the host.
    SameAsHost,
    /// A documented refusal.
    Refused {
        /// What it writes.
        stdout: &'static str,
        /// Its exit code.
        code: i32,
        /// Why it is refused.
        why: &'static str,
    },
}

const fn same(file: &'static str) -> Case {
    Case { file, needs: &[], options: &[], stdin: "", expected: Expected::SameAsHost }
}

const fn with(file: &'static str, needs: &'static [&'static str]) -> Case {
    Case { file, needs, options: &[], stdin: "", expected: Expected::SameAsHost }
}

const fn larger(file: &'static str, options: &'static [(&'static str, &'static str)]) -> Case {
    Case { file, needs: &[], options, stdin: "", expected: Expected::SameAsHost }
}

const fn refused(file: &'static str, stdout: &'static str, why: &'static str) -> Case {
    let expected = Expected::Refused { stdout, code: 0, why };
    Case { file, needs: &[], options: &[], stdin: "", expected }
}

/// All programs.
pub(crate) const CASES: &[Case] = &[
    same("threads.py"),
    same("subprocesses.py"),
    with("sqlite.py", &["python:sqlite3"]),
    same("temporary_files.py"),
    same("multiprocessing_pool.py"),
    same("shared_memory.py"),
    same("concurrent_futures.py"),
    same("asyncio_programs.py"),
    same("loopback_sockets.py"),
    same("http_loopback.py"),
    same("compression_and_hashes.py"),
    with("tls_context.py", &["python:ssl"]),
    same("foreign_functions.py"),
    same("unicode_text.py"),
    larger("big_output.py", &[("--output-limit", "128K")]),
    same("signals.py"),
    same("memory_maps.py"),
    same("own_modules.py"),
    same("data_formats.py"),
    same("unit_tests.py"),
    with("time_zones.py", &["python:zoneinfo"]),
    with("numpy_arrays.py", &["python:numpy"]),
    same("recursion_and_big_numbers.py"),
    Case {
        file: "stdin_filter.py",
        needs: &[],
        options: &[],
        stdin: "1 one\n2 two\n39 a longer line\n",
        expected: Expected::SameAsHost,
    },
    refused(
        "network_refusal.py",
        "refused http://192.0.2.1/\nrefused http://[2001:db8::1]/\nrefused http://name.invalid/\n\
         OSError 101\n",
        "there is no network: ENETUNREACH at once, names do not resolve",
    ),
    refused(
        "system_refusals.py",
        "write to /usr: Read-only file system\nwrite to /etc: Read-only file system\n\
         chroot: Operation not permitted\nbecome root: Invalid argument\n\
         raise priority: Operation not permitted\n\
         read the password hashes: No such file or directory\n\
         signals to init are ignored: None\ndone: signal init\nmount: -1 1\n",
        "the system is read-only, and nothing in a sandbox has privileges",
    ),
    larger("worker_threads.js", &[("--memory", "512M")]),
    Case {
        file: "fetch_refused.js",
        needs: &[],
        options: &[("--memory", "512M")],
        stdin: "",
        expected: Expected::Refused {
            stdout: "refused http://192.0.2.1/ TypeError\nrefused http://name.invalid/ TypeError\n",
            code: 0,
            why: "there is no network",
        },
    },
    larger("child_process.js", &[("--memory", "512M")]),
    larger("files.js", &[("--memory", "512M")]),
    larger("http_loopback.js", &[("--memory", "512M")]),
    larger("crypto_and_streams.js", &[("--memory", "512M")]),
    larger("language.mjs", &[("--memory", "512M")]),
    same("pipes.sh"),
    with("shell_language.sh", &["diff"]),
    same("jobs_and_traps.sh"),
    with("text_tools.sh", &["awk", "sed", "find", "tar"]),
    Case {
        file: "gcc_program.sh",
        needs: &["gcc"],
        options: &[("--memory", "256M")],
        stdin: "",
        expected: Expected::SameAsHost,
    },
    with("perl_program.pl", &[]),
    with("git_commit.sh", &["git"]),
    with("sqlite_shell.sh", &["sqlite3"]),
    with("make_build.sh", &["make"]),
    with("system_view.sh", &["ps", "free", "uptime"]),
];
