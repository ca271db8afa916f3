//! The rights of a session that an agent asks for: never more than the agent has itself.

use super::{NetMode, Policy, PolicyLimits, looseness};

/// A policy, and how far its network reaches where it does not say so itself: that differs between providers.
#[derive(Debug, Clone, Copy)]
pub struct Rights<'a> {
    pub policy: &'a Policy,
    pub usual_network: NetMode,
}

impl Rights<'_> {
    fn network(&self) -> NetMode {
        self.policy.net_mode.unwrap_or(self.usual_network)
    }

    /// The policy without whatever another one does not allow. What is no right stays as it is: budgets, names, who speaks
    /// to whom.
    #[must_use]
    pub fn narrowed_to(&self, other: &Rights<'_>) -> Policy {
        let (own, theirs) = (self.policy, other.policy);
        let shared = |own: &[String], theirs: &[String]| -> Vec<String> {
            own.iter().filter(|one| theirs.contains(one)).cloned().collect()
        };
        let less = |own: Option<u64>, theirs: Option<u64>| own.into_iter().chain(theirs).min();
        let is_stricter = looseness(theirs.protect_tooling) < looseness(own.protect_tooling);
        Policy {
            read: shared(&own.read, &theirs.read),
            write: shared(&own.write, &theirs.write),
            hide: with(&own.hide, theirs.hide.iter()),
            env: shared(&own.env, &theirs.env),
            commands: shared(&own.commands, &theirs.commands),
            net_allow: shared(&own.net_allow, &theirs.net_allow),
            net_mode: match self.network() > other.network() {
                true => Some(other.network()),
                false => own.net_mode,
            },
            limits: PolicyLimits {
                memory: less(own.limits.memory, theirs.limits.memory),
                pids: less(own.limits.pids, theirs.limits.pids),
                tmp: less(own.limits.tmp, theirs.limits.tmp),
                shm: less(own.limits.shm, theirs.limits.shm),
                ..own.limits
            },
            ptrace: match theirs.ptrace {
                Some(true) => own.ptrace,
                _ => own.ptrace.map(|_| false),
            },
            protect_tooling: if is_stricter { theirs.protect_tooling } else { own.protect_tooling },
            approve_rule: rules(&own.approve_rule, &theirs.approve_rule),
            ..own.clone()
        }
    }
}

fn with<'a>(own: &[String], more: impl Iterator<Item = &'a String>) -> Vec<String> {
    more.fold(own.to_vec(), |mut all, one| {
        if !all.contains(one) {
            all.push(one.clone());
        }
        all
    })
}

/// Where two lists of rules differ, nothing is let pass without being asked for, and what either of them denies is denied.
fn rules(own: &[String], theirs: &[String]) -> Vec<String> {
    if own == theirs {
        return own.to_vec();
    }
    let of = |word: &'static str| own.iter().chain(theirs).filter(move |rule| rule.starts_with(word));
    let denied = with(&[], of("deny"));
    let rest = own.iter().chain(theirs).filter(|rule| !rule.starts_with("allow"));
    with(&denied, rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::Setting;

    fn policy(settings: &[&str]) -> Policy {
        settings
            .iter()
            .fold(Policy::default(), |policy, text| policy.changed(&Setting::parse(text).unwrap()).unwrap())
    }

    fn usual(policy: &Policy) -> Rights<'_> {
        Rights { policy, usual_network: NetMode::Provider }
    }

    const SETTINGS: &[&str] = &[
        "read+=/srv/a",
        "read+=@rust",
        "write+=/srv/b",
        "hide+=*.secret",
        "hide+=*.plan",
        "env+=CI",
        "commands+=make",
        "net.allow+=example.org",
        "net.mode=none",
        "net.mode=open",
        "limits.memory=1GiB",
        "limits.memory=4GiB",
        "limits.pids=64",
        "limits.tmp=1GiB",
        "limits.helpers=2",
        "ptrace=on",
        "ptrace=off",
        "protect_tooling=always",
        "protect_tooling=off",
        "approve.rule+=allow run make *",
        "approve.rule+=deny run rm *",
        "budget=5usd/day",
    ];

    proptest! {
        #[test]
        fn whoever_is_asked_for_has_no_right_that_either_lacks(
            own in proptest::sample::subsequence(SETTINGS, 0..SETTINGS.len()),
            theirs in proptest::sample::subsequence(SETTINGS, 0..SETTINGS.len()),
        ) {
            let (own, theirs) = (policy(&own), policy(&theirs));
            let narrowed = usual(&own).narrowed_to(&usual(&theirs));
            prop_assert!(narrowed.is_within(&theirs), "{narrowed:?} {theirs:?}");
            prop_assert!(narrowed.is_within(&own), "{narrowed:?} {own:?}");
            prop_assert_eq!(usual(&own).narrowed_to(&usual(&own)), own, "who has the same keeps all of it");
        }
    }

    #[test]
    fn a_network_is_no_wider_than_that_of_whoever_asks() {
        let none = Policy::default();
        let offline = Rights { policy: &none, usual_network: NetMode::None };
        let online = Rights { policy: &none, usual_network: NetMode::Provider };
        assert_eq!(online.narrowed_to(&offline).net_mode, Some(NetMode::None));
        assert_eq!(offline.narrowed_to(&online).net_mode, None);
    }
}
