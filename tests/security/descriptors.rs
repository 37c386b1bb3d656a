//! Descriptors that the caller of `casemate` had open.

use tests::{Attack, HostRun, Sandbox, scratch, trials, unique};

trials! { inherited_file, inherited_directory, inherited_socket, standard_streams_only }

/// A shell that opens `path` as descriptor 9 and becomes the rest of its
/// arguments.
fn with_descriptor_9(path: &str) -> [&str; 5] {
    ["bash", "-c", "p=$1; shift; exec 9<\"$p\"; exec \"$@\"", "sh", path]
}

fn inherited_file() {
    let folder = scratch();
    let secret = unique("secret");
    let file = folder.path().join("file");
    std::fs::write(&file, &secret).expect("a file");
    let path = file.to_str().expect("a plain path");
    let attack = Attack::new("descriptors.py");

    let mut control: Vec<String> = with_descriptor_9(path).map(str::to_owned).into();
    control.extend(attack.host_argv());
    let _ = attack.host_run();
    let text = HostRun::new(&control).run().text();
    assert!(text.contains("INHERITED 9") && text.contains(&secret), "{text}");

    let ran = attack.run_in(Sandbox::new().wrapper(&with_descriptor_9(path)));
    assert!(!ran.everything().contains(&secret), "{ran:?}");
    assert!(!ran.stdout().contains("INHERITED"), "{}", ran.stdout());
    assert!(ran.stdout().ends_with("done\n"), "{ran:?}");
}

fn inherited_directory() {
    let folder = scratch();
    let secret = unique("secret");
    std::fs::write(folder.path().join("file"), &secret).expect("a file");
    let path = folder.path().to_str().expect("a plain path");
    let attack = Attack::new("descriptors.py").args(&["file", &format!("..{path}/file")]);

    let mut control: Vec<String> = with_descriptor_9(path).map(str::to_owned).into();
    control.extend(attack.host_argv());
    let text = HostRun::new(&control).run().text();
    assert!(text.contains(&secret), "{text}");

    let ran = attack.run_in(Sandbox::new().wrapper(&with_descriptor_9(path)));
    assert!(!ran.everything().contains(&secret), "{ran:?}");
    assert!(!ran.stdout().contains("INHERITED"), "{}", ran.stdout());
}

fn inherited_socket() {
    let trap = tests::TcpTrap::new("127.0.0.1").expect("a loopback address");
    let open = format!("exec 9<>/dev/tcp/127.0.0.1/{}; exec \"$@\"", trap.address.port());
    let shell = ["bash", "-c", open.as_str(), "sh"];
    let send = |marker: &str| {
        let code = format!(
            "import os\nfor d in range(3,64):\n try: os.write(d,b'{marker}')\n except OSError: pass"
        );
        vec!["python3".to_owned(), "-c".to_owned(), code]
    };

    let marker = unique("sent");
    let mut control: Vec<String> = shell.map(str::to_owned).into();
    control.extend(send(&marker));
    let _ = HostRun::new(&control).run();
    assert!(trap.saw(&marker));

    let marker = unique("sent");
    let ran = Sandbox::new().wrapper(&shell).run(&send(&marker));
    assert!(!trap.saw(&marker), "{ran:?}");
}

fn standard_streams_only() {
    let code = "import os\nfor d in sorted(map(int,os.listdir('/proc/self/fd'))): \n try: print(d,os.readlink(f'/proc/self/fd/{d}').split(':')[0])\n except OSError: pass";
    let ran = Sandbox::new().run(&["python3", "-c", code]);
    let open: Vec<&str> = ran.stdout().lines().collect();
    assert_eq!(open.len(), 3, "{open:?}");
    for (number, line) in open.iter().enumerate() {
        let (descriptor, target) = line.split_once(' ').expect("a number and a target");
        assert_eq!(descriptor, number.to_string());
        assert!(matches!(target, "pipe" | "/dev/null" | "socket"), "{open:?}");
    }
}
