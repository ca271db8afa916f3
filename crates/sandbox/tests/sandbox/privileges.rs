//! No rights, no way to get any, and no reach beyond the sandbox.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Command};

use ostler_domain::confinement::Network;

use crate::support::{Campaign, each_way};

/// Calls by number, with what the kernel has to say to them.
fn errno(campaign: &Campaign, call: &str) -> String {
    campaign
        .run(&format!("perl -e '$! = 0; my $r = syscall({call}); print($r == -1 ? $!+0 : \"succeeded\")'"))
}

const EPERM: &str = "1";
const ENOSYS: &str = "38";

#[test]
fn there_are_no_capabilities_and_none_can_come() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        let status = campaign.run("grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status | tr -d '\\t'");
        for line in status.lines() {
            let (name, value) = line.split_once(':').unwrap();
            match name {
                "NoNewPrivs" => assert_eq!(value, "1"),
                "Seccomp" => assert_eq!(value, "2"),
                "Seccomp_filters" => assert!(value.parse::<u32>().unwrap() >= 3),
                _ => assert_eq!(value, "0000000000000000", "{name}"),
            }
        }
        assert_eq!(status.lines().count(), 8);
    });
}

#[test]
fn namespaces_mounts_and_set_id_modes_are_refused() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        campaign.all_fail(&[
            "unshare -U true",
            "unshare -r true",
            "mount -t tmpfs x /tmp",
            "umount /tmp",
            "chroot / true",
            "cp /bin/true t; chmod u+s t",
            "cp /bin/true t; chmod 2755 t",
            "install -m 4755 /bin/true s",
            "mkdir -m 2777 d",
            "mknod n c 1 3",
            "perl -e 'umask 0; use Fcntl; sysopen(my $f, q(o), O_CREAT|O_WRONLY, 04755) or exit 1'",
        ]);
        for entry in fs::read_dir(campaign.root()).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o6000, 0);
        }
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn dangerous_calls_are_not_there() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        for (name, call) in [
            ("ptrace", "101, 0, 0, 0, 0"),
            ("process_vm_readv", "310, 1, 0, 0, 0, 0, 0"),
            ("keyctl", "250, 0, -3, 0, 0, 0"),
            ("add_key", "248, 0, 0, 0, 0, 0"),
            ("bpf", "321, 0, 0, 0"),
            ("perf_event_open", "298, 0, 0, 0, 0, 0"),
            ("open_by_handle_at", "304, 0, 0, 0"),
            ("setns", "308, 0, 0"),
            ("fsopen", "430, 0, 0"),
            ("open_tree", "428, -100, 0, 0"),
            ("reboot", "169, 0, 0, 0, 0"),
            ("sethostname", "170, 0, 0"),
            ("unshare user", "272, 0x10000000"),
            ("unshare user, high bits set", "272, 0x110000000"),
            ("clone user", "56, 0x10000011, 0, 0, 0, 0"),
            ("personality READ_IMPLIES_EXEC", "135, 0x400000"),
            ("raw socket", "41, 2, 3, 1"),
            ("packet socket", "41, 17, 3, 0"),
            ("vsock", "41, 40, 1, 0"),
            ("netlink audit", "41, 16, 3, 9"),
            ("TIOCSTI", "16, 0, 0x5412, 0"),
            ("TIOCSTI, high bits set", "16, 0, 0x100005412, 0"),
            ("TIOCLINUX", "16, 0, 0x541C, 0"),
        ] {
            assert_eq!(errno(&campaign, call), EPERM, "{name}");
        }
        for (name, call) in [
            ("clone3", "435, 0, 0"),
            ("io_uring_setup", "425, 1, 0"),
            ("userfaultfd", "323, 0"),
            ("getpid by its x32 number", "0x40000027"),
            ("mount by its x32 number", "0x400000a5, 0, 0, 0, 0, 0"),
        ] {
            assert_eq!(errno(&campaign, call), ENOSYS, "{name}");
        }
        assert_eq!(errno(&campaign, "135, 0xffffffff"), "succeeded", "asking for the personality");
        assert_eq!(errno(&campaign, "272, 0x400"), "succeeded", "unsharing descriptors");
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_another_architecture_kill() {
    each_way(|way| {
        let campaign = Campaign::new(way);
        if campaign.run("command -v gcc || true").is_empty() {
            eprintln!("skipped: there is no gcc");
            return;
        }
        campaign.write("i386.c", "int main(void) { int pid; __asm__ volatile(\"int $0x80\" : \"=a\"(pid) : \"a\"(20)); return 0; }");
        assert_eq!(campaign.run("gcc -o i386 i386.c; ./i386 2>/dev/null; echo $?"), "159", "SIGSYS");
    });
}

#[cfg(target_arch = "x86_64")]
#[test]
fn ptrace_can_be_allowed() {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| confinement.ptrace = true);
        assert_eq!(errno(&campaign, "101, 0, 0, 0, 0"), "succeeded", "PTRACE_TRACEME");
    });
}

/// A process outside whose number nobody has inside, even if the tests are in a young pid namespace of their own.
struct Victim(Child);

impl Victim {
    fn new() -> Victim {
        loop {
            let victim = Victim(Command::new("sleep").arg("1000").spawn().unwrap());
            if victim.0.id() > 1_000 {
                return victim;
            }
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn nobody_outside_is_reached_by_signals_or_abstract_sockets() {
    nobody_is_reached(&Network::None);
}

/// Abstract sockets belong to the network: here Landlock alone holds them back.
#[test]
fn nor_in_the_hosts_network() {
    nobody_is_reached(&Network::Host { ports: vec![443] });
}

fn nobody_is_reached(network: &Network) {
    each_way(|way| {
        let campaign = Campaign::new(way).with(|confinement| confinement.network = network.clone());
        let name = format!("ostler-{}-{way:?}", std::process::id());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let connect = format!(
            "perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0); connect($s, pack_sockaddr_un(qq(\\0{name}))) or exit 1'"
        );
        let mut victim = Victim::new();
        let number = victim.0.id();
        campaign.all_fail(&[
            &connect,
            &format!("kill -0 {number}"),
            &format!("kill -9 {number}"),
            &format!("ls /proc/{number}"),
        ]);
        assert!(listener.accept().is_err());
        assert_eq!(victim.0.try_wait().unwrap(), None, "it lives");
        // Init is there, belongs to nobody inside, and is not moved by signals.
        assert_eq!(campaign.run("kill -9 1; kill -TERM 1; sleep 0.05; echo alive"), "alive");
    });
}
