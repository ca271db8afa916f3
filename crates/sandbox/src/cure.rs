//! What helps when the kernel, or whoever set it up, keeps something from us that a sandbox needs.

use crate::refusal::Stage;

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;

/// The settings of this machine that are known to be in the way.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    apparmor_restricts_user_namespaces: bool,
    user_namespaces_are_off: bool,
    most_user_namespaces: Option<u64>,
    /// The kind of which the fewest may be made, and how many those are.
    fewest_namespaces: Option<(&'static str, u64)>,
    /// In a user namespace in which there is nobody but root.
    has_one_user: bool,
    security_modules: Option<String>,
}

impl Machine {
    pub(crate) fn look() -> Machine {
        let setting = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        Machine {
            apparmor_restricts_user_namespaces: setting("kernel/apparmor_restrict_unprivileged_userns")
                == Some(1),
            user_namespaces_are_off: setting("kernel/unprivileged_userns_clone") == Some(0),
            most_user_namespaces: setting("user/max_user_namespaces"),
            fewest_namespaces: ["user", "mnt", "pid", "ipc", "uts", "net", "cgroup"]
                .into_iter()
                .filter_map(|kind| Some((kind, setting(&format!("user/max_{kind}_namespaces"))?)))
                .min_by_key(|(_, most)| *most),
            has_one_user: std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| has_one_user(&map)),
            security_modules: std::fs::read_to_string("/sys/kernel/security/lsm").ok(),
        }
    }
}

/// The hint for a failed call.
pub(crate) fn of(stage: Stage, errno: Option<i32>, machine: &Machine) -> String {
    match (stage, errno) {
        (Stage::Namespaces, Some(ENOSPC)) => too_few_namespaces(machine),
        (Stage::Identity | Stage::IdMap, Some(EPERM | EINVAL)) if machine.has_one_user => {
            "root here is the only user of its user namespace, and agents are to be another one: run the daemon outside of it, \
             or map more users into it (unshare --map-auto, podman --userns)"
                .to_owned()
        }
        (Stage::Namespaces, Some(EPERM | EACCES | EINVAL | ENOSYS)) => no_user_namespaces(machine),
        // A user namespace whose use AppArmor restricts is made, and then holds no capabilities.
        (Stage::Mounts | Stage::Network, Some(EPERM | EACCES))
            if machine.apparmor_restricts_user_namespaces =>
        {
            no_user_namespaces(machine)
        }
        (Stage::Mounts, Some(EPERM | EACCES)) => {
            "in a container: run it with CAP_SYS_ADMIN, or run the daemon outside of it".to_owned()
        }
        (Stage::Proc, Some(EPERM)) => "in a container /proc is masked: run it with an unmasked /proc \
             (docker: --security-opt systempaths=unconfined), or run the daemon outside of it"
            .to_owned(),
        (Stage::IdMap, Some(EINVAL | EOPNOTSUPP | EPERM)) => {
            "this file system cannot show root's files as another user's: give the campaign to an ordinary user \
             (chown -R), move it to ext4, xfs, btrfs or tmpfs, or run the daemon as an ordinary user"
                .to_owned()
        }
        (Stage::Hidden | Stage::Tooling, Some(ENOSPC)) => {
            "there are more files to cover than the kernel takes mounts: remove some, or raise fs.mount-max with sysctl"
                .to_owned()
        }
        (Stage::Landlock, _) => no_landlock(machine),
        (Stage::Seccomp, _) => "use a kernel with CONFIG_SECCOMP_FILTER".to_owned(),
        _ => String::new(),
    }
}

fn no_user_namespaces(machine: &Machine) -> String {
    if machine.apparmor_restricts_user_namespaces {
        "kernel.apparmor_restrict_unprivileged_userns is 1: `sudo ostler sandbox allow-userns` installs an AppArmor profile"
            .to_owned()
    } else if machine.user_namespaces_are_off {
        "kernel.unprivileged_userns_clone is 0: set it to 1 with sysctl".to_owned()
    } else if machine.most_user_namespaces == Some(0) {
        too_few_namespaces(machine)
    } else {
        "in a container: run it with CAP_SYS_ADMIN, or run the daemon outside of it; \
         else use a kernel with user, mount, pid, ipc and network namespaces"
            .to_owned()
    }
}

/// The kernel says that there are too many of some kind, and not of which.
fn too_few_namespaces(machine: &Machine) -> String {
    match machine.fewest_namespaces {
        Some((kind, most)) => format!("user.max_{kind}_namespaces is {most}: raise it with sysctl"),
        None => "user.max_user_namespaces: raise it with sysctl".to_owned(),
    }
}

/// `inside outside count`, one line each.
fn has_one_user(uid_map: &str) -> bool {
    let mut counts =
        uid_map.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok());
    (counts.next(), counts.next()) == (Some(1), None)
}

/// Also for a Landlock that is there and too old.
pub(crate) fn no_landlock(machine: &Machine) -> String {
    match &machine.security_modules {
        Some(list) if !list.split(',').any(|name| name.trim() == "landlock") => {
            format!(
                "Landlock is not among the security modules ({}): add it to lsm= on the kernel's command line",
                list.trim()
            )
        }
        _ => "use Linux 6.2 or newer (6.12 for the host's network) with CONFIG_SECURITY_LANDLOCK".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_thing_is_named_with_its_cure() {
        let apparmor = Machine { apparmor_restricts_user_namespaces: true, ..Machine::default() };
        let off = Machine { user_namespaces_are_off: true, ..Machine::default() };
        let none = Machine {
            most_user_namespaces: Some(0),
            fewest_namespaces: Some(("user", 0)),
            ..Machine::default()
        };
        let no_mounts = Machine { fewest_namespaces: Some(("mnt", 0)), ..Machine::default() };
        let alone = Machine {
            has_one_user: has_one_user("         0       1000          1\n"),
            ..Machine::default()
        };
        assert!(!has_one_user("0 0 4294967295\n") && !has_one_user("0 1000 1\n1 100000 65536\n"));
        let other_modules =
            Machine { security_modules: Some("capability,yama\n".into()), ..Machine::default() };
        let plain = Machine::default();
        let cases = [
            (Stage::Namespaces, EPERM, &apparmor, "apparmor_restrict_unprivileged_userns"),
            (Stage::Mounts, EPERM, &apparmor, "allow-userns"),
            (Stage::Namespaces, EPERM, &off, "unprivileged_userns_clone"),
            (Stage::Namespaces, ENOSPC, &none, "max_user_namespaces is 0"),
            (Stage::Namespaces, EPERM, &none, "max_user_namespaces is 0"),
            (Stage::Namespaces, ENOSPC, &no_mounts, "max_mnt_namespaces is 0"),
            (Stage::Identity, EINVAL, &alone, "only user"),
            (Stage::IdMap, EPERM, &alone, "only user"),
            (Stage::Namespaces, EPERM, &plain, "CAP_SYS_ADMIN"),
            (Stage::Mounts, EPERM, &plain, "CAP_SYS_ADMIN"),
            (Stage::Proc, EPERM, &plain, "unmasked /proc"),
            (Stage::IdMap, EINVAL, &plain, "chown -R"),
            (Stage::Hidden, ENOSPC, &plain, "fs.mount-max"),
            (Stage::Landlock, ENOSYS, &other_modules, "lsm="),
            (Stage::Landlock, ENOSYS, &plain, "6.2"),
            (Stage::Seccomp, EINVAL, &plain, "CONFIG_SECCOMP_FILTER"),
        ];
        for (stage, errno, machine, part) in cases {
            let hint = of(stage, Some(errno), machine);
            assert!(hint.contains(part), "{stage} {errno}: {hint}");
        }
        assert_eq!(of(Stage::Root, Some(ENOSPC), &plain), "");
    }
}
