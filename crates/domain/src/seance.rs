//! Asking those who are gone: which words of a question to look for in the record, and what fits it best.

/// Words that questions are made of and that say nothing about what is asked.
const EMPTY: &[&str] = &[
    "a", "about", "after", "all", "an", "and", "any", "are", "as", "at", "be", "been", "before", "but", "by",
    "can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into",
    "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "please", "should", "so", "tell",
    "that", "the", "their", "them", "then", "there", "they", "this", "to", "use", "was", "we", "were",
    "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// How many words of a question are looked for.
const MOST: usize = 8;

/// The words of a question that say what it is about, each once, in their order.
pub fn keywords(question: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let words = question.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.' | '/'));
    for word in words {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if word.chars().count() >= 2 && !EMPTY.contains(&word.as_str()) && !found.contains(&word) {
            found.push(word);
        }
    }
    found.truncate(MOST);
    found
}

/// How well a text fits: how many of the words it has, or the beginnings of.
pub fn fit(text: &str, keywords: &[String]) -> usize {
    let text = text.to_lowercase();
    keywords.iter().filter(|word| text.contains(stem(word))).count()
}

/// What is left of a word when its usual endings are gone.
pub fn stem(word: &str) -> &str {
    let endings = ["ations", "ation", "ings", "ing", "ies", "ed", "es", "s"];
    let cut =
        endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|left| left.chars().count() >= 4));
    cut.unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_about_its_telling_words() {
        assert_eq!(
            keywords("Why did we choose Postgres for the login_limits?"),
            ["choose", "postgres", "login_limits"]
        );
        assert_eq!(keywords("src/login.rs: was it changed?"), ["src/login.rs", "changed"]);
        assert!(keywords("what is it?").is_empty());
        let words = keywords("limits of logins");
        assert_eq!(fit("Login attempts are limited", &words), 2);
        assert_eq!(fit("nothing here", &words), 0);
    }
}
