//! Other processes of the host: neither seen nor touched.

use tests::{Attack, Sandbox, Sleeper, trials, unique};

trials! { seeing, signalling, process_ids_of_the_host, init_cannot_be_killed_or_read }

fn seeing() {
    let marker = unique("sleeper");
    let sleeper = Sleeper::new(&marker, "none");
    let attack = Attack::new("list_processes.py");
    assert!(attack.on_host().text().contains(&marker));
    let ran = attack.in_sandbox();
    assert!(!ran.stdout().contains(&marker), "{}", ran.stdout());
    let seen = ran.stdout().lines().filter(|line| line.starts_with("EXISTS")).count();
    assert!(seen <= 3, "more than itself and its init: {}", ran.stdout());
    drop(sleeper);
}

fn signalling() {
    let ways = [
        "kill", "group", "tgkill", "tkill", "queue", "pidfd", "ptrace", "priority", "affinity",
        "limit",
    ];
    for way in ways {
        let mut planted = Sleeper::new(&unique("sleeper"), "none");
        let pid = planted.pid().to_string();
        if way != "group" {
            let control = Attack::new("signal_processes.py").args(&[way, &pid]).on_host();
            assert!(control.text().contains("DONE"), "{way}: {control:?}");
            if !matches!(way, "priority" | "affinity" | "limit" | "ptrace") {
                assert_eq!(planted.state(), Some('T'), "{way} stops it on the host");
            }
        }
        planted = Sleeper::new(&unique("sleeper"), "none");
        let pid = planted.pid().to_string();
        let own = std::process::id().to_string();
        let before = limits_of(planted.pid());
        let attack = Attack::new("signal_processes.py").args(&[way, &pid, &own]);
        let ran = attack.in_sandbox();
        assert!(!ran.stdout().contains("DONE"), "{way}: {}", ran.stdout());
        assert!(planted.lives() && planted.state() != Some('T'), "{way}");
        assert_eq!(limits_of(planted.pid()), before, "{way}");
    }
}

fn limits_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default()
}

/// Every number, not only one that exists inside by chance.
fn process_ids_of_the_host() {
    let mut sleeper = Sleeper::new(&unique("sleeper"), "none");
    let code = "import os,signal\nhit=0\nfor p in range(2,200000):\n if p==os.getpid(): continue\n try: os.kill(p,signal.SIGSTOP); hit+=1\n except OSError: pass\nprint('hit',hit)";
    let sandbox = Sandbox::new().option("--cpus", "2");
    let ran = sandbox.run(&["python3", "-c", code]);
    assert!(ran.stdout().starts_with("hit 0"), "{ran:?}");
    assert!(sleeper.lives() && sleeper.state() != Some('T'));
}

fn init_cannot_be_killed_or_read() {
    // The program's own environment is in its init's memory on some walls.
    let code = "import os,signal,time\nfor s in (9,15,19,11,6):\n try: os.kill(1,s)\n except OSError: pass\ntime.sleep(0.3)\n\
         for n in ('environ','mem','maps','stack','syscall','io'):\n try: print('READ',n,len(open('/proc/1/'+n,'rb').read(64)))\n except OSError: pass\n\
         for n in ('exe','root','cwd','fd/0'):\n try: print('LINK',n,os.readlink('/proc/1/'+n))\n except OSError: pass\nprint('alive')";
    let ran = Sandbox::new().run(&["python3", "-c", code]);
    assert_eq!(ran.stdout(), "alive\n", "{ran:?}");
}
