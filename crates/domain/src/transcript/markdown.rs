//! A transcript as Markdown that reads well where GitHub shows it. What agents and people said cannot change what stands
//! around it.

use super::story::{Shown, answer_line, picture_line, spent_line};

/// The Markdown of one thing, with an empty line behind it.
pub fn markdown(shown: &Shown) -> String {
    match shown {
        Shown::Title { name, id, cwd, at } => {
            format!("## {}\n\n{} · {} · {at}\n\n", escaped(name), code(id), code(cwd))
        }
        Shown::Told { by, at, text } => {
            let quoted: String = contained(text).lines().map(|line| format!("> {line}\n")).collect();
            format!("### {} <sub>{at}</sub>\n\n{quoted}\n", escaped(by))
        }
        Shown::Said { text } => format!("{}\n\n", contained(text)),
        Shown::Thought { text } => folded("<i>thinking</i>", text, ""),
        Shown::Called { tool, line, arguments } => {
            let summary = format!("<b>{}</b> <code>{}</code>", html(tool), html(line));
            folded(&summary, arguments, "json")
        }
        Shown::Answered { tool, text, exit, is_error } => {
            folded(&html(&answer_line(tool, *exit, *is_error)), text, "")
        }
        Shown::Picture(picture) => format!("*picture: {}*\n\n", escaped(&picture_line(picture))),
        Shown::Spent { model, tokens, cost } => {
            format!("<sub>{}</sub>\n\n", html(&spent_line(model, *tokens, *cost)))
        }
        Shown::Remark { text, is_bad: true } => format!("**{}**\n\n", escaped(text)),
        Shown::Remark { text, is_bad: false } => format!("*{}*\n\n", escaped(text)),
    }
}

fn folded(summary: &str, text: &str, language: &str) -> String {
    let fence = fence(text);
    let text = text.trim_end();
    format!("<details><summary>{summary}</summary>\n\n{fence}{language}\n{text}\n{fence}\n\n</details>\n\n")
}

/// One that no line of the text ends.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// Text of somebody's own as a piece of code.
fn code(text: &str) -> String {
    format!("<code>{}</code>", html(text))
}

pub(super) fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One line in which nothing is a mark.
fn escaped(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        if "\\`*_[]<>#|~!".contains(c) {
            line.push('\\');
        }
        line.push(c);
    }
    line
}

/// Markdown of an agent's with which nothing ends but itself: what it opens is closed, and no tag is one.
fn contained(text: &str) -> String {
    let mut open: Option<String> = None;
    let mut all = String::new();
    for line in text.trim_end().lines() {
        let trimmed = line.trim_start();
        let mark = trimmed.chars().next().filter(|c| "`~".contains(*c));
        let run = mark.map_or(0, |mark| trimmed.chars().take_while(|c| *c == mark).count());
        match &open {
            Some(fence) => {
                let is_end = trimmed.trim_end().chars().all(|c| Some(c) == mark)
                    && run >= fence.len()
                    && mark == fence.chars().next();
                if is_end {
                    open = None;
                }
                all.push_str(line);
            }
            None if run >= 3 => {
                open = mark.map(|mark| mark.to_string().repeat(run));
                all.push_str(line);
            }
            None => all.push_str(&without_tags(line)),
        }
        all.push('\n');
    }
    if let Some(fence) = open {
        all.push_str(&fence);
    }
    all.trim_end().to_owned()
}

/// Pieces of code stay as they are: no tag is one in them.
fn without_tags(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let last = parts.len() - 1;
    let part = |(n, part): (usize, &&str)| {
        let is_code = n % 2 == 1 && n != last;
        if is_code { (*part).to_owned() } else { part.replace('<', "&lt;") }
    };
    parts.iter().enumerate().map(part).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_ends_with_itself() {
        for (text, shown) in [
            ("a\n```rust\nlet a = 1 < 2;", "a\n```rust\nlet a = 1 < 2;\n```"),
            ("~~~~\n~~~\n```", "~~~~\n~~~\n```\n~~~~"),
            ("</details><!-- x", "&lt;/details>&lt;!-- x"),
            ("is `a<b` or <b>", "is `a<b` or &lt;b>"),
            ("one ` and <b>", "one ` and &lt;b>"),
        ] {
            assert_eq!(contained(text), shown);
        }
        let answered = Shown::Answered {
            tool: "run".to_owned(),
            text: "```\n</details>\n````".to_owned(),
            exit: Some(1),
            is_error: true,
        };
        let text = markdown(&answered);
        assert!(text.contains("\n`````\n```\n</details>\n````\n`````\n"), "{text}");
        assert!(text.starts_with("<details><summary>run failed (exit 1)</summary>"), "{text}");
    }
}
