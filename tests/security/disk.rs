//! Files written: their bytes and their number are limited, in every place
//! that can be written to, together.

use tests::{Attack, Ran, Sandbox, scratch, trials};

trials! { one_big_file, every_place_together, many_files, many_directories, sparse_file, allocation, disk_is_freed }

/// Everywhere that a program could write in a sandbox, or might think so.
const PLACES: [&str; 8] =
    ["/tmp", "/home/user", "/dev/shm", "/var/tmp", "/run", "/dev", "/dev/mqueue", "/"];

fn written(text: &str) -> u64 {
    let number = text.split_whitespace().skip_while(|word| *word != "written").nth(1);
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("in {text:?}"))
}

fn on_host(how: &str, amount: &str) -> u64 {
    let plain = scratch();
    let here = plain.path().to_str().expect("a plain path");
    written(&Attack::new("fill_disk.py").args(&[how, amount, here]).on_host().text())
}

fn in_sandbox(how: &str, amount: &str, places: &[&str]) -> (u64, Ran) {
    let mut arguments = vec![how, amount];
    arguments.extend(places);
    let sandbox = Sandbox::new().option("--disk", "16M").option("--memory", "1G");
    let sandbox = sandbox.option("--cpus", "2").option("--timeout", "20s");
    let ran = Attack::new("fill_disk.py").args(&arguments).run_in(sandbox);
    if ran.stdout().is_empty() {
        // Ended by the limit before it could say how far it came.
        assert_eq!(ran.limit_hit(), Some("disk"), "{ran:?}");
        return (0, ran);
    }
    (written(ran.stdout()), ran)
}

const LIMIT: u64 = 16 << 20;

fn one_big_file() {
    assert!(on_host("big", "100000000") >= 100_000_000);
    let (bytes, ran) = in_sandbox("big", "100000000", &["/tmp"]);
    assert!(bytes <= LIMIT, "{bytes}: {ran:?}");
}

fn every_place_together() {
    let (bytes, ran) = in_sandbox("big", "100000000", &PLACES);
    assert!(bytes <= LIMIT + (1 << 20), "{bytes}: {ran:?}");
}

fn many_files() {
    assert_eq!(on_host("many", "30000"), 30_000);
    let (files, ran) = in_sandbox("many", "1000000", &["/tmp"]);
    // An inode is kernel memory, about a kilobyte, whatever the file holds.
    assert!(files <= 100_000, "{files} files: {ran:?}");
}

fn many_directories() {
    let (directories, ran) = in_sandbox("deep", "1000000", &["/tmp"]);
    assert!(directories <= 100_000, "{directories} directories: {ran:?}");
}

fn sparse_file() {
    assert!(on_host("sparse", "100000000000") >= 300_000_000);
    let (bytes, ran) = in_sandbox("sparse", "100000000000", &["/tmp"]);
    assert!(bytes <= LIMIT, "{bytes}: {ran:?}");
}

fn allocation() {
    assert!(on_host("allocate", "100000000") >= 100_000_000);
    let (bytes, ran) = in_sandbox("allocate", "100000000", &["/tmp", "/dev/shm"]);
    assert!(bytes <= LIMIT, "{bytes}: {ran:?}");
}

/// A limit that only ever counts up would end programs that tidy up.
fn disk_is_freed() {
    let code = "import os\nfor n in range(40):\n open('/tmp/f','wb').write(b'x'*4_000_000)\n os.unlink('/tmp/f')\nprint('fits')";
    let sandbox = Sandbox::new().option("--disk", "16M").option("--memory", "256M");
    let ran = sandbox.option("--cpus", "2").run(&["python3", "-c", code]);
    assert_eq!((ran.stdout(), ran.limit_hit()), ("fits\n", None), "{ran:?}");
}
