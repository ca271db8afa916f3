//! Limits of each process, and the end of all capabilities.

use std::io;

use ostler_domain::confinement::Limits;
use ostler_domain::limits::SANDBOX_LOCKED_BYTES;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

use crate::refusal::{OrRefuse, Refusal, Stage};

pub(crate) fn set(limits: &Limits) -> Result<(), Refusal> {
    let mut all = vec![
        (Resource::Core, 0),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, limits.processes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Memlock, SANDBOX_LOCKED_BYTES),
        (Resource::Msgqueue, 0),
        // Some people's programs may run before everybody else's.
        (Resource::Rtprio, 0),
        (Resource::Nice, 0),
    ];
    all.extend(limits.address_space_bytes.map(|bytes| (Resource::As, bytes)));
    for (resource, wanted) in all {
        // A lower limit that we were started with holds as well.
        let most = getrlimit(resource).maximum.map_or(wanted, |most| most.min(wanted));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
            .or_refuse(Stage::Limits, format_args!("limiting {resource:?} to {most}"))?;
    }
    Ok(())
}

/// What masks are made with: mounts, and a look into directories that are closed to their owner.
pub(crate) const WARDENS: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::DAC_READ_SEARCH);

/// Gives up every capability, and the way to any.
pub(crate) fn drop_capabilities() -> Result<(), Refusal> {
    keep_capabilities(CapabilitySet::empty())
}

/// Gives up every other capability, and the way to any.
pub(crate) fn keep_capabilities(kept: CapabilitySet) -> Result<(), Refusal> {
    let give_up = || -> io::Result<()> {
        for number in 0..64 {
            let capability = CapabilitySet::from_bits_retain(1 << number);
            match remove_capability_from_bounding_set(capability) {
                Ok(()) => {}
                // Behind the last one that this kernel knows.
                Err(rustix::io::Errno::INVAL) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        clear_ambient_capability_set()?;
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        Ok(set_capabilities(None, sets)?)
    };
    give_up().or_refuse(Stage::Limits, "giving up capabilities")
}
