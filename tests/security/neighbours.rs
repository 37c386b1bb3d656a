//! Sandboxes that run at the same time know nothing of each other.

use std::time::Duration;

use tests::{Attack, HostRun, Ran, Sandbox, trials, unique, wait_until};

trials! {
    what_one_leaves_another_does_not_find, what_a_run_leaves_the_next_does_not_find,
    activity_of_others, locks_reach_nobody,
}

fn leave_and_look() -> (Attack, Attack, String) {
    let secret = unique("secret");
    let key = (std::process::id() % 100_000 + 70_000).to_string();
    let reversed: String = secret.chars().rev().collect();
    let leave = Attack::new("neighbour.py").args(&["leave", &secret, &key, "3"]);
    let look = Attack::new("neighbour.py").args(&["look", &reversed, &key]);
    (leave, look, secret)
}

fn what_one_leaves_another_does_not_find() {
    let (leave, look, secret) = leave_and_look();
    let control = std::thread::scope(|scope| {
        let leaving = scope.spawn(|| leave.on_host());
        std::thread::sleep(Duration::from_millis(700));
        let found = look.on_host().text();
        let _ = leaving.join();
        found
    });
    for place in ["/tmp/", "/dev/shm/", "in shm", "at a socket", "/cmdline"] {
        let found = control.lines().any(|line| line.contains(&secret) && line.contains(place));
        assert!(found, "on the host it is found {place}: {control}");
    }

    let live = leave.start_in(Sandbox::new());
    std::thread::sleep(Duration::from_millis(1200));
    let ran = look.in_sandbox();
    let left = live.wait();
    assert_eq!(left.stdout(), "left\n", "{left:?}");
    assert_eq!(ran.stdout(), "looked\n", "{ran:?}");
}

fn what_a_run_leaves_the_next_does_not_find() {
    let secret = unique("secret");
    let leave = format!(
        "for d in /tmp /home/user /dev/shm /var/tmp; do echo {secret} > $d/left 2>/dev/null; done; cat /tmp/left"
    );
    let ran = Sandbox::new().run(&["sh", "-c", &leave]);
    assert_eq!(ran.stdout().trim(), secret);
    let ran = Sandbox::new().run(&[
        "sh",
        "-c",
        "cat /tmp/left /home/user/left /dev/shm/left; ls -A /tmp /dev/shm /home/user",
    ]);
    assert!(!ran.stdout().contains("left"), "{ran:?}");
    assert!(!ran.stdout().contains(&secret), "{ran:?}");
}

/// A program that nothing else on the machine runs meanwhile, and one that is
/// locked.
const RUN: &str = "/usr/bin/factor";
const LOCKED: &str = "/usr/bin/tsort";

/// Where the wall shows the host's own inodes it must say so.
fn is_named(ran: &Ran, word: &str) -> bool {
    let controls = ran.json["controls"].as_array().expect("a list");
    controls
        .iter()
        .any(|control| control["detail"].as_str().is_some_and(|text| text.contains(word)))
}

/// Which programs run on the host and in other sandboxes is nobody's business.
fn activity_of_others() {
    let attack = Attack::new("watch_others.py").args(&["/usr/bin", "/usr/bin/comm", "2.5"]);
    let run_something = || {
        std::thread::sleep(Duration::from_millis(1000));
        let on_host = HostRun::new(&[RUN, "6"]).run();
        let inside = Sandbox::new().run(&[RUN, "6"]);
        assert_eq!((on_host.text().as_str(), inside.stdout()), ("6: 2 3\n", "6: 2 3\n"));
    };
    let control = std::thread::scope(|scope| {
        let watching = scope.spawn(|| attack.on_host());
        run_something();
        watching.join().expect("it ends")
    });
    assert!(control.text().contains("SEEN factor"), "{control:?}");
    let live = attack.start_in(Sandbox::new());
    run_something();
    let ran = live.wait();
    assert!(ran.stdout().starts_with("begun"), "{ran:?}");
    if ran.stdout().contains("SEEN factor") && is_named(&ran, "inotify") {
        tests::skip_attack("watch_others.py", "the host's own /usr is shown, as `controls` says");
        return;
    }
    assert!(!ran.stdout().contains("SEEN factor"), "{ran:?}");
}

fn locks_reach_nobody() {
    let attack = Attack::new("watch_others.py").args(&["/usr/bin", LOCKED, "1.5"]);
    let is_locked = || HostRun::new(&["flock", "-n", LOCKED, "true"]).run().code() == 1;
    std::thread::scope(|scope| {
        let locking = scope.spawn(|| attack.on_host());
        assert!(wait_until(Duration::from_secs(3), is_locked), "on the host it locks");
        let _ = locking.join();
    });
    let live = attack.start_in(Sandbox::new());
    let locked = wait_until(Duration::from_millis(1500), is_locked);
    let ran = live.wait();
    if locked && is_named(&ran, "locks") {
        tests::skip_attack(
            "watch_others.py lock",
            "the host's own /usr is shown, as `controls` says",
        );
        return;
    }
    assert!(!locked, "a sandbox locks a file of the host: {ran:?}");
}
