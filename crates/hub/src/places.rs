//! Places for connections. Strangers, of whom nothing is known yet, have places of their own: however many they are, whoever
//! has shown a key keeps theirs, and whoever is about to show one finds one.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, Ipv6Addr, Shutdown, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Connections at once that have shown nothing. Each has a thread, as all of them have.
const STRANGERS: usize = 256;

/// What somebody has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A key: a machine, or somebody who looks.
    Key,
    /// What may be a machine's share. The machine says whether it is.
    Share,
}

impl Shown {
    /// Those who may be served at once.
    const fn most(self) -> usize {
        match self {
            Shown::Key => 512,
            Shown::Share => 256,
        }
    }
}

#[derive(Default)]
pub(crate) struct Places(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    /// The oldest first.
    strangers: VecDeque<Stranger>,
    with_key: usize,
    with_share: usize,
    next: u64,
}

impl Taken {
    fn count(&mut self, shown: Shown) -> &mut usize {
        match shown {
            Shown::Key => &mut self.with_key,
            Shown::Share => &mut self.with_share,
        }
    }
}

struct Stranger {
    number: u64,
    whose: Option<IpAddr>,
    tcp: Arc<TcpStream>,
}

/// A place that is taken, until this is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    shown: Option<Shown>,
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a stranger in. Where there is no room, somebody else has to go: to say who one is takes a moment, and of those
    /// who do not, the one that has stood there longest is the least likely to, of the address that has most of them.
    pub(crate) fn enter(self: &Arc<Places>, tcp: &Arc<TcpStream>) -> Place {
        let whose = tcp.peer_addr().ok().map(|peer| whose(peer.ip()));
        let mut taken = self.taken();
        if taken.strangers.len() >= STRANGERS
            && let Some(place) = goes(taken.strangers.iter().map(|stranger| stranger.whose))
            && let Some(stranger) = taken.strangers.remove(place)
        {
            // Its thread hears the end, wherever it waits.
            let _ = stranger.tcp.shutdown(Shutdown::Both);
        }
        taken.next += 1;
        let number = taken.next;
        taken.strangers.push_back(Stranger { number, whose, tcp: Arc::clone(tcp) });
        Place { places: Arc::clone(self), number, shown: None }
    }
}

/// Which of them goes: the first of those that are most.
fn goes(strangers: impl Iterator<Item = Option<IpAddr>>) -> Option<usize> {
    let mut found: HashMap<Option<IpAddr>, (usize, usize)> = HashMap::new();
    for (place, whose) in strangers.enumerate() {
        found.entry(whose).or_insert((0, place)).0 += 1;
    }
    found.into_values().max_by_key(|(count, first)| (*count, usize::MAX - first)).map(|(_, first)| first)
}

/// Whose an address is: somebody with IPv6 has as many as they like that begin alike.
fn whose(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

impl Place {
    /// They are a stranger no more. False where there is no room for another such.
    pub(crate) fn has_shown(&mut self, shown: Shown) -> bool {
        let mut taken = self.places.taken();
        if *taken.count(shown) >= shown.most() {
            return false;
        }
        taken.strangers.retain(|stranger| stranger.number != self.number);
        *taken.count(shown) += 1;
        self.shown = Some(shown);
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        match self.shown {
            Some(shown) => *taken.count(shown) -= 1,
            None => taken.strangers.retain(|stranger| stranger.number != self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_loses_the_one_that_waited_longest() {
        let [a, b, c] = ["192.0.2.1", "192.0.2.2", "2001:db8::1"].map(|text| text.parse::<IpAddr>().ok());
        assert_eq!(goes([a, b, b, a, b].into_iter()), Some(1));
        assert_eq!(goes([c, a, b].into_iter()), Some(0), "the oldest, where all have as many");
        assert_eq!(goes(std::iter::empty()), None);
        let of = |text: &str| whose(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }

    #[test]
    fn a_stranger_goes_for_another_and_whoever_is_known_stays() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let places = Arc::new(Places::default());
        let enter = || {
            let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let near = Arc::new(listener.accept().unwrap().0);
            (places.enter(&near), near, far)
        };
        let mut known = enter();
        assert!(known.0.has_shown(Shown::Key));
        let first = enter();
        let others: Vec<_> = (0..STRANGERS).map(|_| enter()).collect();
        let is_open = |tcp: &TcpStream| tcp.take_error().is_ok_and(|error| error.is_none()) && peeks(tcp);
        assert!(!is_open(&first.1) && is_open(&known.1) && others.iter().all(|(_, tcp, _)| is_open(tcp)));
        drop((first, others, known));
        let taken = places.taken();
        assert_eq!((taken.strangers.len(), taken.with_key, taken.with_share), (0, 0, 0));
    }

    /// Whether something may still come.
    fn peeks(tcp: &TcpStream) -> bool {
        tcp.set_nonblocking(true).unwrap();
        tcp.peek(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }
}
