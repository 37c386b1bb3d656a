//! Sandboxes that run at the same time know nothing of each other.

use std::time::Duration;

use tests::{Attack, Sandbox, trials, unique};

trials! { what_one_leaves_another_does_not_find, what_a_run_leaves_the_next_does_not_find }

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
