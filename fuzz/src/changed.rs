//! Bytes to try without a fuzzer: good ones, changed in ways that a seed decides. The same each time.

/// Hands `count` changed copies of `good` to `with`.
pub(super) fn changed(good: &[&[u8]], seed: u64, count: usize, mut with: impl FnMut(&[u8])) {
    let mut random = Random(seed | 1);
    for _ in 0..count {
        let mut bytes = good[random.below(good.len())].to_vec();
        for _ in 0..random.below(6) {
            random.change(&mut bytes, good);
        }
        with(&bytes);
    }
}

/// Xorshift: enough to find one's way by.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        if most == 0 { 0 } else { (self.0 % most as u64) as usize }
    }

    fn change(&mut self, bytes: &mut Vec<u8>, good: &[&[u8]]) {
        let at = self.below(bytes.len() + 1);
        match self.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, self.below(256) as u8),
            2 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            3 if at < bytes.len() => drop(bytes.remove(at)),
            4 => {
                let other = good[self.below(good.len())];
                let from = self.below(other.len() + 1);
                bytes.splice(at..at, other[from..].iter().copied().take(64));
            }
            _ => {
                // Lengths and counts are where readers trust too much.
                let large = u32::MAX.wrapping_sub(self.below(3) as u32).to_le_bytes();
                bytes.splice(at..at, large);
            }
        }
    }
}
