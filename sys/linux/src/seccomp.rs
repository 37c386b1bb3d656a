//! Seccomp filters: which system calls a process may make.
//!
//! Sources: seccomp(2); Linux `include/uapi/linux/{filter,seccomp,audit}.h`.
//!
//! A filter is a binary search over the call's number, because the kernel walks
//! the whole filter once for each number when it is put in force, to find the
//! calls that it can let pass without running it.

use std::collections::BTreeMap;
use std::io;
use std::str::FromStr as _;

/// What the kernel does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Makes it.
    Allow,
    /// Fails it with this errno.
    Fail(u16),
}

/// What a filter does with one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Always the same.
    Always(Verdict),
    /// `hit` if the low 32 bits of an argument pass the test, else `miss`.
    If {
        /// Which argument, from 0 to 5.
        argument: u8,
        /// The test.
        test: Test,
        /// If it passes.
        hit: Verdict,
        /// If it does not.
        miss: Verdict,
    },
}

/// A test of the low 32 bits of an argument, where the kernel itself looks at
/// no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// It is one of these.
    OneOf(Vec<u32>),
    /// It has one of these bits.
    AnyBit(u32),
}

/// A filter before it is compiled.
#[derive(Clone, Debug)]
pub struct Filter {
    rules: BTreeMap<u32, Rule>,
    default: Verdict,
}

/// A compiled filter.
#[derive(Clone, Debug)]
pub struct Program(Vec<libc::sock_filter>);

/// Why a filter cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SeccompError {
    /// This architecture has no filter yet.
    #[error("no system-call filter for this processor architecture")]
    Architecture,
    /// A rule stands for the call already.
    #[error("two rules for the system call `{0}`")]
    Twice(String),
    /// The filter is longer than the kernel takes.
    #[error("the filter has {0} instructions; the kernel takes 4096")]
    TooLong(usize),
    /// A rule names a seventh argument or a test with too many values.
    #[error("the rule for `{0}` cannot be compiled")]
    Rule(String),
}

/// The number of a system call on this machine, if it has one of that name.
#[must_use]
pub fn number(name: &str) -> Option<u32> {
    syscalls::Sysno::from_str(name).ok().and_then(|call| u32::try_from(call.id()).ok())
}

#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: Option<u32> = Some(0xC000_003E);
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: Option<u32> = Some(0xC000_00B7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const AUDIT_ARCH: Option<u32> = None;

/// Set in the numbers of x86-64's 32-bit-pointer ABI.
const X32_BIT: u32 = 0x4000_0000;

// Offsets in `struct seccomp_data`.
const OFFSET_NR: u32 = 0;
const OFFSET_ARCH: u32 = 4;
const OFFSET_ARGS: u32 = 16;

#[allow(clippy::cast_possible_truncation)] // BPF opcodes are below 256.
mod op {
    pub(super) const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    pub(super) const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
    pub(super) const JUMP_EQ: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    pub(super) const JUMP_GE: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    pub(super) const JUMP_SET: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    pub(super) const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
}

fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

fn give(verdict: Verdict) -> libc::sock_filter {
    let action = match verdict {
        Verdict::Allow => libc::SECCOMP_RET_ALLOW,
        Verdict::Fail(errno) => libc::SECCOMP_RET_ERRNO | u32::from(errno),
    };
    instruction(op::RETURN, action, 0, 0)
}

impl Filter {
    /// A filter with a verdict for every call that no rule names.
    #[must_use]
    pub fn new(default: Verdict) -> Self {
        Self { rules: BTreeMap::new(), default }
    }

    /// Adds a rule. A call that this machine has not is left out.
    ///
    /// # Errors
    ///
    /// [`SeccompError::Twice`] or [`SeccompError::Rule`].
    pub fn add(&mut self, name: &str, rule: Rule) -> Result<(), SeccompError> {
        if let Rule::If { argument, test, .. } = &rule {
            let fits = match test {
                Test::OneOf(values) => values.len() <= 200,
                Test::AnyBit(_) => true,
            };
            if *argument > 5 || !fits {
                return Err(SeccompError::Rule(name.into()));
            }
        }
        let Some(number) = number(name) else { return Ok(()) };
        match self.rules.insert(number, rule) {
            None => Ok(()),
            Some(_) => Err(SeccompError::Twice(name.into())),
        }
    }

    /// The number of calls that are allowed, always or by argument.
    #[must_use]
    pub fn allowed(&self) -> usize {
        self.rules
            .values()
            .filter(|rule| match rule {
                Rule::Always(verdict) => *verdict == Verdict::Allow,
                Rule::If { hit, miss, .. } => [hit, miss].contains(&&Verdict::Allow),
            })
            .count()
    }

    /// Compiles the filter. A call through another architecture's entry (32-bit
    /// code on x86-64) kills the process: that entry has other numbers.
    ///
    /// # Errors
    ///
    /// [`SeccompError::Architecture`] or [`SeccompError::TooLong`].
    pub fn compile(&self) -> Result<Program, SeccompError> {
        let arch = AUDIT_ARCH.ok_or(SeccompError::Architecture)?;
        let mut code = vec![
            instruction(op::LOAD, OFFSET_ARCH, 0, 0),
            instruction(op::JUMP_EQ, arch, 1, 0),
            instruction(op::RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
            instruction(op::LOAD, OFFSET_NR, 0, 0),
        ];
        if cfg!(target_arch = "x86_64") {
            code.push(instruction(op::JUMP_GE, X32_BIT, 0, 1));
            code.push(give(self.default));
        }
        code.extend(search(&self.ranges()));
        if code.len() > 4096 {
            return Err(SeccompError::TooLong(code.len()));
        }
        Ok(Program(code))
    }

    /// The rules as neighbouring ranges of numbers, each from its start to the
    /// next, covering all numbers.
    fn ranges(&self) -> Vec<(u32, Rule)> {
        let mut ranges = vec![(0, Rule::Always(self.default))];
        let mut push = |start: u32, rule: &Rule| match ranges.last_mut() {
            Some((_, last)) if last == rule && matches!(rule, Rule::Always(_)) => {}
            Some((at, last)) if *at == start => *last = rule.clone(),
            _ => ranges.push((start, rule.clone())),
        };
        let mut next = 0;
        for (&number, rule) in &self.rules {
            if number > next {
                push(next, &Rule::Always(self.default));
            }
            push(number, rule);
            next = number + 1;
        }
        push(next, &Rule::Always(self.default));
        ranges
    }
}

/// Code that finds the range of the number in the accumulator and ends.
fn search(ranges: &[(u32, Rule)]) -> Vec<libc::sock_filter> {
    let [(_, rule)] = ranges else {
        let (left, right) = ranges.split_at(ranges.len() / 2);
        let (left, start, right) = (search(left), right[0].0, search(right));
        let mut code = match u8::try_from(left.len()) {
            Ok(skip) => vec![instruction(op::JUMP_GE, start, skip, 0)],
            // Further than a conditional jump reaches.
            Err(_) => vec![
                instruction(op::JUMP_GE, start, 0, 1),
                instruction(op::JUMP, u32::try_from(left.len()).unwrap_or(u32::MAX), 0, 0),
            ],
        };
        code.extend(left);
        code.extend(right);
        return code;
    };
    match rule {
        Rule::Always(verdict) => vec![give(*verdict)],
        Rule::If { argument, test, hit, miss } => {
            // The low half comes first: both architectures are little-endian.
            let mut code =
                vec![instruction(op::LOAD, OFFSET_ARGS + 8 * u32::from(*argument), 0, 0)];
            match test {
                Test::AnyBit(bits) => code.push(instruction(op::JUMP_SET, *bits, 1, 0)),
                Test::OneOf(values) => {
                    for (i, value) in values.iter().enumerate() {
                        let skip = u8::try_from(values.len() - i).unwrap_or(u8::MAX);
                        code.push(instruction(op::JUMP_EQ, *value, skip, 0));
                    }
                }
            }
            code.extend([give(*miss), give(*hit)]);
            code
        }
    }
}

impl Program {
    /// The number of instructions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none; it never has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the filter in force for this thread and all it starts, for good.
    /// `no_new_privs` must be set before.
    ///
    /// # Errors
    ///
    /// The kernel's, as seccomp(2) lists them.
    pub fn install(&self) -> io::Result<()> {
        let len = u16::try_from(self.0.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let program = libc::sock_fprog { len, filter: self.0.as_ptr().cast_mut() };
        // SAFETY: `program` points to `len` instructions, which the kernel copies
        // and does not write.
        let result = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program as the kernel would, over one call.
    fn judge(program: &Program, arch: u32, number: u32, args: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_le_bytes());
        data.extend(arch.to_le_bytes());
        data.extend(0_u64.to_le_bytes());
        for arg in args {
            data.extend(arg.to_le_bytes());
        }
        let (mut pc, mut acc) = (0_usize, 0_u32);
        loop {
            let i = program.0[pc];
            pc += 1;
            let branch = |taken: bool| usize::from(if taken { i.jt } else { i.jf });
            match i.code {
                op::LOAD => {
                    let at = i.k as usize;
                    acc = u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
                }
                op::JUMP => pc += i.k as usize,
                op::JUMP_EQ => pc += branch(acc == i.k),
                op::JUMP_GE => pc += branch(acc >= i.k),
                op::JUMP_SET => pc += branch(acc & i.k != 0),
                op::RETURN => return i.k,
                other => panic!("opcode {other}"),
            }
        }
    }

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | 1;
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | 38;

    #[test]
    fn every_number_gets_its_verdict() {
        let arch = AUDIT_ARCH.unwrap();
        let mut filter = Filter::new(Verdict::Fail(38));
        // Many lone rules, so that some jumps are long.
        let names: Vec<String> = (0..400_usize)
            .filter_map(syscalls::Sysno::new)
            .map(|call| call.name().to_owned())
            .collect();
        assert!(names.len() > 300);
        for (i, name) in names.iter().enumerate() {
            let rule = match i % 3 {
                0 => Rule::Always(Verdict::Allow),
                1 => Rule::Always(Verdict::Fail(1)),
                _ => Rule::If {
                    argument: 1,
                    test: Test::OneOf(vec![5, 7]),
                    hit: Verdict::Allow,
                    miss: Verdict::Fail(1),
                },
            };
            filter.add(name, rule).unwrap();
        }
        let program = filter.compile().unwrap();
        for (i, name) in names.iter().enumerate() {
            let number = number(name).unwrap();
            let (five, nine) = match i % 3 {
                0 => (ALLOW, ALLOW),
                1 => (EPERM, EPERM),
                _ => (ALLOW, EPERM),
            };
            assert_eq!(judge(&program, arch, number, [0, 5, 0, 0, 0, 0]), five, "{name}");
            assert_eq!(judge(&program, arch, number, [0, 9, 0, 0, 0, 0]), nine, "{name}");
            // The kernel ignores the high half of an int, so the test must too.
            assert_eq!(judge(&program, arch, number, [0, 5 | 1 << 40, 0, 0, 0, 0]), five, "{name}");
        }
        assert_eq!(judge(&program, arch, 9999, [0; 6]), ENOSYS);
        assert_eq!(judge(&program, arch, X32_BIT, [0; 6]), ENOSYS, "x32");
        assert_eq!(
            judge(&program, 0x4000_0003, 0, [0; 6]),
            libc::SECCOMP_RET_KILL_PROCESS,
            "32-bit entry"
        );
    }

    #[test]
    fn bits_are_tested() {
        let mut filter = Filter::new(Verdict::Fail(38));
        let rule = Rule::If {
            argument: 0,
            test: Test::AnyBit(0x7E02_0000),
            hit: Verdict::Fail(1),
            miss: Verdict::Allow,
        };
        filter.add("clone", rule).unwrap();
        let program = filter.compile().unwrap();
        let arch = AUDIT_ARCH.unwrap();
        let clone = number("clone").unwrap();
        for (flags, want) in [(0x11, ALLOW), (0x1000_0011, EPERM), (0x2_0000, EPERM)] {
            assert_eq!(judge(&program, arch, clone, [flags, 0, 0, 0, 0, 0]), want, "{flags:#x}");
        }
    }

    #[test]
    fn bad_rules_are_refused() {
        let mut filter = Filter::new(Verdict::Allow);
        filter.add("read", Rule::Always(Verdict::Allow)).unwrap();
        assert_eq!(
            filter.add("read", Rule::Always(Verdict::Allow)),
            Err(SeccompError::Twice("read".into()))
        );
        let seventh = Rule::If {
            argument: 6,
            test: Test::AnyBit(1),
            hit: Verdict::Allow,
            miss: Verdict::Allow,
        };
        assert_eq!(filter.add("write", seventh), Err(SeccompError::Rule("write".into())));
    }
}
