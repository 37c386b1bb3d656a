//! Opening files by handle, past every mount: the "shocker" exploit.

use tests::{Attack, scratch, trials, unique};

trials! { shocker }

fn shocker() {
    let Some(printer) = Attack::maybe("file_handle.c") else { return };
    // On the file system that `/usr` is on, if the scratch directory is not.
    let folder = scratch();
    let secret = unique("secret");
    let file = folder.path().join("file");
    std::fs::write(&file, &secret).expect("a file");
    let path = file.to_str().expect("a plain path");
    let handle = printer.args(&["print", path]).on_host();
    if handle.code() != 0 {
        tests::skip_control("file_handle.c", "this file system gives no handles");
        return;
    }
    let opener = Attack::maybe("file_handle.c").expect("it compiled a moment ago");
    let opener = opener.args(&["open", &handle.text(), "/usr", "/", "/tmp", "/etc", "/proc/self"]);
    if tests::is_root() {
        let control = opener.on_host();
        assert!(control.text().contains(&secret), "{control:?}");
    } else {
        tests::skip_control("file_handle.c", "opening by handle needs root on the host");
    }
    let ran = opener.in_sandbox();
    assert!(!ran.everything().contains(&secret), "{ran:?}");
    assert!(ran.stdout().contains("/usr EPERM"), "{ran:?}");
}
