//! System calls that are not there inside: four filters, one on the other.
//!
//! 1. Numbers of the x32 interface: ENOSYS. They are second names for everything that is forbidden below.
//! 2. Calls for which libraries have another way: ENOSYS, so that they take it.
//! 3. Extended attributes: EOPNOTSUPP, as on a file system that has none.
//! 4. Calls, and arguments of calls, that nobody confined needs: EPERM.
//!
//! A program of another architecture is killed by its first call.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use crate::refusal::{Refusal, Stage};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

const NOT_OFFERED: [c_long; 6] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    // While anybody has such memory, the machine does not hibernate.
    SYS_MEMFD_SECRET,
];

/// As on a file system without attributes, which programs are used to. An ACL makes a filled set-gid file executable,
/// and its name is in memory.
const NOT_SUPPORTED: [c_long; 4] =
    [libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, SYS_SETXATTRAT];

/// Forbidden whatever their arguments.
const FORBIDDEN: &[c_long] = &[
    // Mounts and roots, old and new.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    SYS_OPEN_TREE_ATTR,
    // Other processes' memory and descriptors.
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Programs in the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    // A session keyring is inherited from outside.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Files by number, past every directory.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_fanotify_init,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_set_mempolicy_home_node,
];

#[cfg(target_arch = "x86_64")]
const FORBIDDEN_HERE: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const FORBIDDEN_HERE: &[c_long] = &[];

/// Not yet named by every C library; the numbers are the same on all architectures.
const SYS_OPEN_TREE_ATTR: c_long = 467;
const SYS_FCHMODAT2: c_long = 452;
const SYS_MEMFD_SECRET: c_long = 447;
const CLONE_NEWTIME: i32 = 0x80;
const TIOCLINUX: u64 = 0x541C;
const TIOCSETD: u64 = 0x5423;
const SYS_SETXATTRAT: c_long = 463;
const ADDR_NO_RANDOMIZE: u64 = 0x0004_0000;
const PERSONALITY_QUERY: u64 = 0xffff_ffff;
const SOCKET_TYPE: u64 = 0xf;
const SOCK_PACKET: i32 = 10;
const O_TMPFILE: u64 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64;

/// The argument with this number, of which only the low half is looked at: the kernel ignores the high half of what it
/// takes for an int, and a comparison of all 64 bits is evaded by setting one there.
fn is(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn has_bits(argument: u8, bits: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    is(argument, SeccompCmpOp::MaskedEq(bits), bits)
}

/// Forbids a call if all of the conditions hold; several such rules for a call are alternatives.
fn forbid<const N: usize>(
    rules: &mut Rules,
    call: c_long,
    conditions: [Result<SeccompCondition, seccompiler::BackendError>; N],
) -> Result<(), seccompiler::BackendError> {
    let conditions = conditions.into_iter().collect::<Result<Vec<_>, _>>()?;
    rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
    Ok(())
}

fn forbidden(ptrace: bool, hosts_network: bool) -> Result<Rules, seccompiler::BackendError> {
    use SeccompCmpOp::{Eq, Ne};
    let whole = FORBIDDEN.iter().chain(FORBIDDEN_HERE).copied().chain((!ptrace).then_some(libc::SYS_ptrace));
    let mut rules: Rules = whole.map(|call| (call, Vec::new())).collect();
    let rules_mut = &mut rules;

    for namespace in [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ] {
        let bit = u64::from(namespace as u32);
        forbid(rules_mut, libc::SYS_unshare, [has_bits(0, bit)])?;
        forbid(rules_mut, libc::SYS_clone, [has_bits(0, bit)])?;
    }
    // In `clone` this bit belongs to the signal of the child's end.
    forbid(rules_mut, libc::SYS_unshare, [has_bits(0, CLONE_NEWTIME as u64)])?;

    // Typing into a terminal, having modules loaded for one, and taking one away from its session. Plain TIOCSCTTY is what every terminal program does.
    // C libraries differ in the type of a request; the kernel looks at 32 bits.
    let [sti, sctty] = [libc::TIOCSTI, libc::TIOCSCTTY].map(|request| u64::from(request as u32));
    for request in [sti, TIOCLINUX, TIOCSETD] {
        forbid(rules_mut, libc::SYS_ioctl, [is(1, Eq, request)])?;
    }
    forbid(rules_mut, libc::SYS_ioctl, [is(1, Eq, sctty), is(2, Ne, 0)])?;

    // What the agent owns may be root's on the disk: a set-id program of its making would be a way to root for any
    // user of the host. `openat2` has its mode in memory, but all that it can make is an empty file, and filling one
    // clears the bits.
    for bit in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
        for (call, mode) in modes() {
            forbid(rules_mut, call, [has_bits(mode, bit)])?;
        }
        for (call, flags) in opens() {
            for creates in [libc::O_CREAT as u64, O_TMPFILE] {
                forbid(rules_mut, call, [has_bits(flags, creates), has_bits(flags + 1, bit)])?;
            }
        }
    }

    let [unix, inet, inet6, netlink] =
        [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| family as u64);
    let socket = libc::SYS_socket;
    forbid(rules_mut, socket, [is(0, Ne, unix), is(0, Ne, inet), is(0, Ne, inet6), is(0, Ne, netlink)])?;
    forbid(rules_mut, socket, [is(0, Eq, netlink), is(2, Ne, 0)])?;
    for family in [inet, inet6] {
        // The second is an old name for a socket of another family.
        for kind in [libc::SOCK_RAW, SOCK_PACKET] {
            let kind = is(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind as u64);
            forbid(rules_mut, socket, [is(0, Eq, family), kind])?;
        }
        // Landlock's ports are those of plain TCP: multipath TCP and others would reach every one.
        let [any, icmp, tcp, udp, icmp6] =
            [0, libc::IPPROTO_ICMP, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMPV6]
                .map(|protocol| is(2, Ne, protocol as u64));
        forbid(rules_mut, socket, [is(0, Eq, family), any, icmp, tcp, udp, icmp6])?;
    }
    if hosts_network {
        // Landlock's ports are those of TCP connections. Datagrams reach every port, and a socket that listens without
        // having been bound is given one that anybody can connect to.
        for family in [inet, inet6] {
            let datagrams = is(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), libc::SOCK_DGRAM as u64);
            forbid(rules_mut, socket, [is(0, Eq, family), datagrams])?;
        }
        rules_mut.insert(libc::SYS_listen, Vec::new());
    }
    // It makes a socket of the family, and has its module loaded, before it finds that there are no pairs of them.
    forbid(rules_mut, libc::SYS_socketpair, [is(0, Ne, unix)])?;
    // Connects without asking Landlock.
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        forbid(rules_mut, call, [has_bits(flags, libc::MSG_FASTOPEN as u64)])?;
    }

    // Sanitizers and debuggers turn address randomization off; everything else weakens more than that.
    let usual = [is(0, Ne, 0), is(0, Ne, ADDR_NO_RANDOMIZE), is(0, Ne, PERSONALITY_QUERY)];
    forbid(rules_mut, libc::SYS_personality, usual)?;
    Ok(rules)
}

/// Calls with a mode for files, and which argument it is.
fn modes() -> Vec<(c_long, u8)> {
    let mut modes =
        vec![(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2), (libc::SYS_mknodat, 2)];
    #[cfg(target_arch = "x86_64")]
    modes.extend([(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)]);
    modes
}

/// Calls that may create, and which argument has the flags; the mode is the next one.
fn opens() -> Vec<(c_long, u8)> {
    let mut opens = vec![(libc::SYS_openat, 2)];
    #[cfg(target_arch = "x86_64")]
    opens.push((libc::SYS_open, 1));
    opens
}

/// The filters, ready for the kernel.
pub(crate) fn filters(ptrace: bool, hosts_network: bool) -> Result<Vec<BpfProgram>, Refusal> {
    let compile = |rules: Rules, errno: i32| -> Result<BpfProgram, seccompiler::BackendError> {
        let arch: TargetArch = std::env::consts::ARCH.try_into()?;
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch)?.try_into()
    };
    let not_offered = NOT_OFFERED.map(|call| (call, Vec::new())).into();
    let not_supported = NOT_SUPPORTED.map(|call| (call, Vec::new())).into();
    let programs = forbidden(ptrace, hosts_network).and_then(|forbidden| {
        Ok(vec![
            compile(not_offered, libc::ENOSYS)?,
            compile(not_supported, libc::EOPNOTSUPP)?,
            compile(forbidden, libc::EPERM)?,
        ])
    });
    let mut programs = programs.map_err(|error| refused(&error))?;
    if cfg!(target_arch = "x86_64") {
        programs.insert(0, no_x32());
    }
    Ok(programs)
}

/// seccompiler has no word for ranges of numbers.
fn no_x32() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        instruction(LOAD_WORD, 0, 0, 0),
        instruction(JUMP_IF_AT_LEAST, 0, 1, X32),
        instruction(RETURN, 0, 0, ERRNO | libc::ENOSYS as u32),
        instruction(RETURN, 0, 0, ALLOW),
    ]
}

pub(crate) fn restrict(filters: &[BpfProgram]) -> Result<(), Refusal> {
    filters.iter().try_for_each(|filter| apply_filter(filter)).map_err(|error| refused(&error))
}

fn refused(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(
        Stage::Seccomp,
        error.to_string(),
        crate::cure::of(Stage::Seccomp, None, &crate::cure::Machine::default()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_four_filters_and_they_fit() {
        for (ptrace, hosts_network) in [(false, false), (true, false), (false, true)] {
            let filters = filters(ptrace, hosts_network).unwrap();
            assert_eq!(filters.len(), if cfg!(target_arch = "x86_64") { 4 } else { 3 });
            // The kernel takes 4096 instructions a filter.
            assert!(filters.iter().all(|filter| (4..=4096).contains(&filter.len())));
        }
    }

    #[test]
    fn ptrace_is_the_only_choice() {
        let (strict, tracing) = (forbidden(false, false).unwrap(), forbidden(true, false).unwrap());
        let only: Vec<_> = strict.keys().filter(|call| !tracing.contains_key(call)).collect();
        assert_eq!(only, [&libc::SYS_ptrace]);
    }

    #[test]
    fn a_call_is_forbidden_as_a_whole_or_by_its_arguments() {
        let rules = forbidden(false, false).unwrap();
        for whole in [libc::SYS_mount, libc::SYS_bpf, libc::SYS_keyctl, libc::SYS_setns] {
            assert!(rules[&whole].is_empty(), "{whole}");
        }
        for partly in [
            libc::SYS_unshare,
            libc::SYS_clone,
            libc::SYS_ioctl,
            libc::SYS_socket,
            libc::SYS_fchmodat,
            SYS_FCHMODAT2,
            libc::SYS_openat,
        ] {
            assert!(!rules[&partly].is_empty(), "{partly}");
        }
        assert!(!rules.contains_key(&libc::SYS_openat2));
        assert!(!rules.contains_key(&libc::SYS_listen), "test servers work in a network of their own");
        assert!(forbidden(false, true).unwrap()[&libc::SYS_listen].is_empty());
    }
}
