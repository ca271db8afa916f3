//! Random choices that can be made again: a seed is printed, and given back by `OSTLER_SEED`.

/// A small generator (SplitMix64): the same seed gives the same choices everywhere.
#[derive(Debug, Clone)]
pub struct Seed {
    state: u64,
}

impl Seed {
    /// The seed of `OSTLER_SEED`, or a fresh one; printed, so that a failure can be repeated.
    pub fn announced(test: &str) -> Self {
        let given = std::env::var("OSTLER_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let mut bytes = [0; 8];
            let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
            u64::from_le_bytes(bytes) >> 1
        });
        #[allow(clippy::print_stderr, reason = "a seed is of use only if it is seen")]
        {
            eprintln!("{test}: OSTLER_SEED={seed}");
        }
        Self::of(seed)
    }

    pub fn of(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end.max(1)
    }

    pub fn chance(&mut self, of_hundred: u64) -> bool {
        self.below(100) < of_hundred
    }
}
