//! The gateway as a process, in a network of the test's own: public-looking addresses on its loopback, names from a file
//! of its own, and no interface that leads anywhere else.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as the tests do")]

mod allowance;
mod inside;
mod keeper;
mod model;

use std::{os::unix::process::ExitStatusExt, process::Command};

/// The network: a whole subnet on loopback, so that servers in it are not the address that the gateway speaks from.
const SETUP: &str = r#"
set -e
ip link set lo up
ip addr add 93.184.216.1/24 dev lo
ip -6 addr add 2606:2800:220:1::1/128 dev lo
mount --make-rprivate /
mount --bind "$1/hosts" /etc/hosts
mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf
mount --bind "$1/resolv.conf" /etc/resolv.conf
shift
exec "$@"
"#;

const HOSTS: &str = "
93.184.216.34 files.example www.files.example other.example
127.0.0.1 localhost loop.example
10.0.0.1 private.example
169.254.169.254 metadata.example
100.64.0.1 carrier.example
93.184.216.1 self.example
::ffff:93.184.216.34 mapped.example
fd00:ec2::254 metadata6.example
93.184.216.99 closed.example
";

#[test]
fn in_a_network_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("hosts", HOSTS), ("nsswitch.conf", "hosts: files\n"), ("resolv.conf", "\n")] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let run = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount", "--"]);
        command.args(["sh", "-c", SETUP, "sh"]).arg(dir.path()).args(args).output()
    };
    match run(&["true"]) {
        Ok(output) if output.status.success() => {}
        tried => {
            assert!(std::env::var_os("CI").is_none(), "this machine makes no network of its own: {tried:?}");
            eprintln!("skipped: in_a_network_of_its_own needs unshare, ip and user namespaces: {tried:?}");
            return;
        }
    }
    let own = std::env::current_exe().unwrap();
    let output =
        run(&[own.to_str().unwrap(), "inside::", "--ignored", "--nocapture", "--test-threads=4"]).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{said}\n{errors}", output.status.signal());
    assert!(said.contains("test result: ok") && !said.contains(" 0 passed"), "{said}");
}
