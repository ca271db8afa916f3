//! Text with the statistics of text: a few words are everywhere, most are rare.

use ostler_testkit::Seed;

/// Distinct words, about as many as a large code base and its talk have.
const VOCABULARY: f64 = 60_000.0;

/// The most frequent words, in the order of their frequency.
const COMMON: &[&str] = &[
    "the", "to", "a", "of", "and", "in", "is", "it", "for", "that", "test", "this", "with", "on", "file",
    "be", "not", "as", "error", "function", "from", "an", "are", "by", "if", "now", "add", "line", "code",
    "when", "fix", "has", "use", "which", "was", "so", "all", "return", "value", "one", "type", "no", "can",
    "but", "call", "run", "will", "new", "only", "at", "or", "check", "change", "we", "then", "name",
    "first", "need", "let", "see", "path", "string", "fails", "default", "does", "each", "module", "build",
    "before", "after", "read", "set", "list", "should", "there", "because", "still", "remove", "update",
    "same", "config", "result", "user", "look", "make", "branch", "server", "request", "client", "database",
    "query", "cache", "session", "token", "login", "timeout", "retry", "queue",
];

const SYLLABLES: &[&str] = &[
    "ba", "cor", "del", "en", "fi", "gra", "hol", "in", "jo", "ka", "lum", "mer", "no", "or", "pel", "qui",
    "ras", "sel", "ti", "un", "vor", "wen", "xi", "yar", "zo", "tra",
];

/// One word; the more frequent the lower its rank (Zipf).
pub(crate) fn word(seed: &mut Seed) -> String {
    of_rank(rank(seed, VOCABULARY))
}

/// The word that is this frequent among all.
pub(crate) fn of_rank(rank: usize) -> String {
    match COMMON.get(rank) {
        Some(word) => (*word).to_owned(),
        None => made_up(rank),
    }
}

/// About this many characters of text.
pub(crate) fn text(seed: &mut Seed, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        if !text.is_empty() {
            text.push(if seed.chance(4) { '\n' } else { ' ' });
        }
        text.push_str(&word(seed));
    }
    text
}

/// A place from 0 below `end` whose chance falls with its number.
pub(crate) fn rank(seed: &mut Seed, end: f64) -> usize {
    let rank = end.powf(unit(seed)) as usize;
    rank.saturating_sub(1)
}

/// A number from 0 below 1.
pub(crate) fn unit(seed: &mut Seed) -> f64 {
    const STEPS: u64 = 1 << 52;
    seed.below(STEPS) as f64 / STEPS as f64
}

fn made_up(mut rank: usize) -> String {
    let mut word = String::new();
    while rank > 0 {
        word.push_str(SYLLABLES[rank % SYLLABLES.len()]);
        rank /= SYLLABLES.len();
    }
    word
}

/// What makes an id unlike all others.
pub(super) fn entropy(seed: &mut Seed) -> u128 {
    u128::from(seed.below(u64::MAX)) << 64 | u128::from(seed.below(u64::MAX))
}
