//! Who the agent is: to the kernel, to itself, and to the disk. Never root, to any of them but the last.
//!
//! | daemon | root belongs to | agent runs as | on disk |
//! |---|---|---|---|
//! | ordinary user | anyone | that user | that user |
//! | root | user U | U | U |
//! | root | root | a throw-away uid | root, by an id-mapped mount |

use std::path::Path;

use rustix::fs::{Gid, Uid};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::refusal::{OrRefuse, Refusal, Stage};

/// Uids that nobody hands out: above those of containers, below those that are negative in a signed number.
const THROW_AWAY_FIRST: u32 = 1_900_000_000;
/// What a throw-away uid is called inside, where it is the same in every session.
const INSIDE: u32 = 1_000;

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// As the kernel knows it.
    pub(crate) outside: Ids,
    /// As the agent knows it.
    pub(crate) inside: Ids,
    /// The daemon is root: its files are to appear as the agent's.
    pub(crate) daemon_is_root: bool,
    /// The campaign's files are root's and are to appear as the agent's.
    pub(crate) owns_roots_files: bool,
}

impl Identity {
    /// Decides by who we are and whose the campaign's root is. `process` is a number that no other living session
    /// of this machine has.
    pub(crate) fn choose(us: Ids, owner: Ids, accounts: &Accounts, process: u32) -> Identity {
        if us.uid != 0 {
            let gid = if us.gid == 0 { INSIDE } else { us.gid };
            return Identity {
                outside: us,
                inside: Ids { uid: us.uid, gid },
                daemon_is_root: false,
                owns_roots_files: false,
            };
        }
        if owner.uid != 0 {
            // Their own group; the directory's may be any. Root's group is no more theirs than root is.
            let gid = [accounts.group_of(owner.uid), Some(owner.gid)].into_iter().flatten();
            let ids = Ids { uid: owner.uid, gid: gid.into_iter().find(|&gid| gid != 0).unwrap_or(owner.uid) };
            return Identity { outside: ids, inside: ids, daemon_is_root: true, owns_roots_files: false };
        }
        let mut id = THROW_AWAY_FIRST + process;
        while accounts.knows(id) {
            id += 1;
        }
        Identity {
            outside: Ids { uid: id, gid: id },
            inside: Ids { uid: INSIDE, gid: INSIDE },
            daemon_is_root: true,
            owns_roots_files: true,
        }
    }

    /// Gives up being root for good.
    pub(crate) fn assume(&self) -> Result<(), Refusal> {
        let Ids { uid, gid } = self.outside;
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        set_thread_groups(&[]).or_refuse(Stage::Identity, "leaving root's groups")?;
        set_thread_res_gid(gid, gid, gid).or_refuse(Stage::Identity, "changing the group")?;
        set_thread_res_uid(uid, uid, uid).or_refuse(Stage::Identity, "changing the user")?;
        // The change made our files in /proc root's, and the id maps are among them.
        set_dumpable_behavior(DumpableBehavior::Dumpable)
            .or_refuse(Stage::Identity, "owning our files in /proc")
    }
}

/// What `/etc/passwd` says about ids.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: Vec<Ids>,
}

impl Accounts {
    pub(crate) fn read() -> Accounts {
        std::fs::read(Path::new("/etc/passwd"))
            .map_or_else(|_| Accounts::default(), |text| Accounts::parse(&String::from_utf8_lossy(&text)))
    }

    fn parse(passwd: &str) -> Accounts {
        let user = |line: &str| {
            let mut fields = line.split(':').skip(2);
            Some(Ids { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
        };
        Accounts { users: passwd.lines().filter_map(user).collect() }
    }

    fn group_of(&self, uid: u32) -> Option<u32> {
        self.users.iter().find(|user| user.uid == uid).map(|user| user.gid)
    }

    fn knows(&self, id: u32) -> bool {
        self.users.iter().any(|user| user.uid == id || user.gid == id)
    }
}

/// The map of a mount on which root's files are those of `id`. Every other id keeps its own, or files of others could
/// be neither written nor deleted; only `id` itself, which owns nothing on the disk, is left out.
pub(crate) fn disk_map(id: u32) -> String {
    const IDS: u32 = u32::MAX;
    let mut map = format!("0 {id} 1\n");
    if id > 1 {
        map += &format!("1 1 {}\n", id - 1);
    }
    if id < IDS - 1 {
        map += &format!("{next} {next} {count}\n", next = id + 1, count = IDS - id - 1);
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nada:x:1000:100::/home/ada:/bin/sh\nop:x:1001:0::/:/bin/sh\nodd\n";

    fn ids(uid: u32, gid: u32) -> Ids {
        Ids { uid, gid }
    }

    #[test]
    fn nobody_is_root_inside() {
        let accounts = Accounts::parse(PASSWD);
        let choose = |us, owner| Identity::choose(us, owner, &accounts, 77);

        let user = choose(ids(1000, 100), ids(0, 0));
        assert_eq!((user.outside, user.inside), (ids(1000, 100), ids(1000, 100)));
        assert!(!user.owns_roots_files && !user.daemon_is_root);
        assert_eq!(choose(ids(1000, 0), ids(1000, 0)).inside, ids(1000, 1000));

        let owner = choose(ids(0, 0), ids(1000, 0));
        assert_eq!((owner.outside, owner.inside), (ids(1000, 100), ids(1000, 100)), "their own group");
        assert!(owner.daemon_is_root && !owner.owns_roots_files);
        assert_eq!(choose(ids(0, 0), ids(1001, 0)).outside, ids(1001, 1001), "not root's group");
        assert_eq!(choose(ids(0, 0), ids(5000, 60)).outside, ids(5000, 60), "an account elsewhere");

        let throw_away = choose(ids(0, 0), ids(0, 0));
        assert_eq!(throw_away.outside, ids(THROW_AWAY_FIRST + 77, THROW_AWAY_FIRST + 77));
        assert_eq!(throw_away.inside, ids(1000, 1000));
        assert!(throw_away.owns_roots_files);
    }

    #[test]
    fn a_throw_away_uid_is_nobodys() {
        let taken = THROW_AWAY_FIRST + 77;
        let accounts = Accounts::parse(&format!("a:x:{taken}:5:::\nb:x:6:{}:::\n", taken + 1));
        let identity = Identity::choose(ids(0, 0), ids(0, 0), &accounts, 77);
        assert_eq!(identity.outside.uid, taken + 2);
    }

    #[test]
    fn the_map_of_the_disk_has_every_id_but_one() {
        assert_eq!(disk_map(1000), "0 1000 1\n1 1 999\n1001 1001 4294966294\n");
        assert_eq!(disk_map(1), "0 1 1\n2 2 4294967293\n");
        assert_eq!(disk_map(u32::MAX - 1), "0 4294967294 1\n1 1 4294967293\n");
        for id in [1, 2, 1000, THROW_AWAY_FIRST] {
            let total: u64 = disk_map(id)
                .lines()
                .map(|line| line.split(' ').next_back().unwrap().parse::<u64>().unwrap())
                .sum();
            assert_eq!(total, u64::from(u32::MAX) - 1);
        }
    }
}
