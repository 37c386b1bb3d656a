//! The host's network, and every other family of sockets.

use tests::{Attack, Report, Sandbox, TcpTrap, UdpTrap, UnixTrap, scratch, trials, unique};

trials! {
    tcp_to_loopback, udp_to_loopback, tcp_to_host_address, ipv6, dns_question, name_lookup,
    metadata_address, abstract_unix_socket, path_unix_socket, path_unix_socket_in_a_put_folder,
    other_families, own_interface_only, loopback_inside_works,
}

fn send(protocol: &str, address: std::net::SocketAddr, marker: &str) -> Attack {
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    Attack::new("net_send.py").args(&[protocol, &ip, &port, marker])
}

fn tcp_is_refused(address: &str, trap: Option<TcpTrap>) {
    let Some(trap) = trap else {
        tests::skip_attack("net_send.py tcp", &format!("this host has no address {address}"));
        return;
    };
    let marker = unique("tcp");
    send("tcp", trap.address, &marker).on_host();
    assert!(trap.saw(&marker), "the host reaches its own listener");
    let marker = unique("tcp");
    let ran = send("tcp", trap.address, &marker).in_sandbox();
    assert!(!trap.saw(&marker), "it came out: {ran:?}");
    assert_ne!(ran.exit_code(), Some(0));
}

fn tcp_to_loopback() {
    tcp_is_refused("127.0.0.1", TcpTrap::new("127.0.0.1"));
}

fn udp_is_refused(address: &str, trap: Option<UdpTrap>) {
    let Some(trap) = trap else {
        tests::skip_attack("net_send.py udp", &format!("this host has no address {address}"));
        return;
    };
    let marker = unique("udp");
    send("udp", trap.address, &marker).on_host();
    assert!(trap.saw(&marker), "the host reaches its own socket");
    let marker = unique("udp");
    let ran = send("udp", trap.address, &marker).in_sandbox();
    assert!(!trap.saw(&marker), "it came out: {ran:?}");
}

fn udp_to_loopback() {
    udp_is_refused("127.0.0.1", UdpTrap::new("127.0.0.1"));
}

/// Addresses of this host other than loopback: traffic to them stays on it.
fn host_addresses() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let mut found = Vec::new();
    let mut last = "";
    for line in table.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            last = address.trim();
        } else if line.contains("/32 host LOCAL") && !last.starts_with("127.") {
            found.push(last.to_owned());
        }
    }
    found.dedup();
    found
}

fn tcp_to_host_address() {
    let Some(address) = host_addresses().into_iter().next() else {
        tests::skip_attack("net_send.py to a host address", "this host has only loopback");
        return;
    };
    tcp_is_refused(&address, TcpTrap::new(&address));
    udp_is_refused(&address, UdpTrap::new(&address));
}

fn ipv6() {
    tcp_is_refused("::1", TcpTrap::new("::1"));
    udp_is_refused("::1", UdpTrap::new("::1"));
}

fn dns_question() {
    let trap = UdpTrap::new("127.0.0.1").expect("a loopback address");
    let port = trap.address.port().to_string();
    let ask = |marker: &str, all: &[&str]| {
        let mut arguments = vec!["127.0.0.1", &port, marker];
        arguments.extend(all);
        Attack::new("net_dns.py").args(&arguments)
    };
    let marker = unique("d");
    ask(&marker, &[]).on_host();
    assert!(trap.saw(&marker));
    let marker = unique("d");
    let ran = ask(&marker, &["all"]).in_sandbox();
    assert!(!trap.saw(&marker), "{ran:?}");
    assert!(!ran.stdout().contains("answered"), "{ran:?}");
}

fn name_lookup() {
    tests::skip_control("net_dns.py NAME", "tests send nothing to other machines");
    let ran = Attack::new("net_dns.py").args(&["www"]).in_sandbox();
    assert!(ran.stdout().starts_with("refused"), "{ran:?}");
    assert!(ran.process.elapsed < std::time::Duration::from_secs(8), "and promptly");
}

fn metadata_address() {
    // The control of the same program is `tcp_to_loopback`'s.
    let ran = Attack::new("net_send.py").args(&["tcp", "169.254.169.254", "80", "x"]).in_sandbox();
    assert_ne!(ran.exit_code(), Some(0), "{ran:?}");
    assert!(ran.stderr().contains("nreachable") || ran.stderr().contains("Error"), "{ran:?}");
    assert!(ran.process.elapsed < std::time::Duration::from_secs(3), "it fails at once");
    for address in ["192.168.0.1", "10.0.0.1", "8.8.8.8", "fe80::1", "2001:db8::1"] {
        for protocol in ["tcp", "udp"] {
            let ran = Attack::new("net_send.py").args(&[protocol, address, "53", "x"]).in_sandbox();
            assert_ne!(ran.exit_code(), Some(0), "{protocol} {address}: {ran:?}");
        }
    }
}

fn abstract_unix_socket() {
    let name = unique("wall-test");
    let trap = UnixTrap::at_name(&name);
    let at = format!("@{name}");
    let marker = unique("unix");
    Attack::new("net_unix.py").args(&[&marker, &at]).on_host();
    assert!(trap.saw(&marker));
    let marker = unique("unix");
    let ran = Attack::new("net_unix.py").args(&[&marker, &at]).in_sandbox();
    assert!(!trap.saw(&marker), "{ran:?}");
}

fn path_unix_socket() {
    let folder = scratch();
    let path = folder.path().join("socket");
    let trap = UnixTrap::at_path(&path);
    open_to_all(folder.path());
    let path = path.to_str().expect("a plain path");
    let marker = unique("unix");
    Attack::new("net_unix.py").args(&[&marker, path]).on_host();
    assert!(trap.saw(&marker));
    let marker = unique("unix");
    let through_root = format!("/proc/1/root{path}");
    let everyday = ["/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket"];
    let mut arguments = vec![marker.as_str(), path, &through_root];
    arguments.extend(everyday);
    let ran = Attack::new("net_unix.py").args(&arguments).in_sandbox();
    assert!(!trap.saw(&marker), "{ran:?}");
    assert!(!ran.stdout().contains("sent to"), "{ran:?}");
}

/// A folder that holds a socket is put in: its files may come, no way out may.
fn path_unix_socket_in_a_put_folder() {
    let folder = scratch();
    let path = folder.path().join("socket");
    let trap = UnixTrap::at_path(&path);
    open_to_all(folder.path());
    std::fs::write(folder.path().join("file"), "x").expect("a file");
    let marker = unique("unix");
    let sandbox = Sandbox::new().put(folder.path(), "/tmp/shared").may_fail();
    let attack = Attack::new("net_unix.py").args(&[&marker, "/tmp/shared/socket"]);
    let ran = attack.run_in(sandbox);
    assert!(!trap.saw(&marker), "{ran:?}");
}

fn open_to_all(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
}

fn other_families() {
    let Some(attack) = Attack::maybe("net_families.c") else { return };
    let host = Report::read(&attack.on_host().text());
    assert_eq!(host.of("16.3"), "ok", "the host lets anybody have AF_NETLINK");
    let ran = attack.in_sandbox();
    let inside = Report::read(ran.stdout());
    let mut expected = vec![];
    for family in [1, 2, 10] {
        expected.push(format!("{family}.1"));
        expected.push(format!("{family}.2"));
    }
    let mut made: Vec<&str> =
        inside.iter().filter(|&(_, result)| result == "ok").map(|(name, _)| name).collect();
    // AF_UNIX takes every type but SOCK_PACKET, and makes pairs.
    let harmless = |name: &str| {
        let bare = name.trim_start_matches("pair").trim_start_matches("wide");
        bare.starts_with("1.") || expected.iter().any(|wanted| wanted == bare)
    };
    made.retain(|name| !harmless(name));
    assert!(made.is_empty(), "sockets of other kinds: {made:?}");
    let reachable = host.iter().filter(|&(_, result)| result == "ok").count();
    assert!(reachable > expected.len(), "the host has more");
}

fn own_interface_only() {
    let attack = Attack::new("net_interfaces.py");
    let control = attack.in_namespaces();
    assert!(control.text().contains("\nchanged"), "within bare namespaces: {control:?}");
    let ran = attack.in_sandbox();
    assert!(ran.stdout().contains("interfaces lo\n"), "{ran:?}");
    assert!(ran.stdout().contains("unchanged"), "{ran:?}");
}

/// Programs that talk to themselves are no attack.
fn loopback_inside_works() {
    for (address, family) in [("127.0.0.1", "AF_INET"), ("::1", "AF_INET6")] {
        let code = format!(
            "import socket\ns=socket.socket(socket.{family})\ns.bind(('{address}',0))\ns.listen()\n\
             c=socket.create_connection(s.getsockname()[:2])\na,_=s.accept()\nc.sendall(b'hello')\nprint(a.recv(9))"
        );
        let ran = Sandbox::new().run(&["python3", "-c", &code]);
        if address == "::1" && !std::path::Path::new("/proc/net/if_inet6").exists() {
            tests::skip_attack("IPv6 loopback inside", "the host has no IPv6");
            continue;
        }
        assert_eq!(ran.stdout(), "b'hello'\n", "{address}: {ran:?}");
    }
}
