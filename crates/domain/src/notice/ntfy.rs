//! A notice as ntfy takes it: the text is the body, and the rest is in headers.

use super::Notice;
use crate::text::one_line;

/// As much as a header's value may have here.
const HEADER: usize = 200;

/// The headers and the body.
pub fn pushed(notice: &Notice) -> (Vec<(String, String)>, Vec<u8>) {
    let priority = if notice.is_urgent() { "high" } else { "default" };
    let mut headers = vec![
        ("Title".to_owned(), plain(&notice.title())),
        ("Priority".to_owned(), priority.to_owned()),
        ("Tags".to_owned(), format!("ostler,{}", notice.on.as_str())),
    ];
    // In an action a comma would end the address, and a semicolon the action.
    let link = notice.link.as_deref().filter(|link| plain(link) == **link && !link.contains([',', ';']));
    if let Some(link) = link {
        let word = if notice.approval.is_some() { "Answer" } else { "Open" };
        headers.push(("Click".to_owned(), link.to_owned()));
        headers.push(("Actions".to_owned(), format!("view, {word}, {link}, clear=true")));
    }
    (headers, notice.body().into_bytes())
}

/// Letters of ASCII: a header knows no others.
fn plain(text: &str) -> String {
    let ascii = |letter: char| if letter.is_ascii() && !letter.is_ascii_control() { letter } else { '?' };
    one_line(text, HEADER).chars().map(ascii).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Time, notice::Occasion};

    #[test]
    fn what_somebody_waits_for_is_urgent_and_nothing_breaks_a_header() {
        let mut notice = Notice::trial(Occasion::Approval, "nod_1", "phone", Time::default());
        notice.agent = "ann\r\nX-Evil: 1 ü".to_owned();
        notice.link = Some("https://o.example/open/abc".to_owned());
        let (headers, body) = pushed(&notice);
        let header =
            |name: &str| headers.iter().find_map(|(key, value)| (key == name).then_some(value.as_str()));
        assert_eq!(header("Priority"), Some("high"));
        assert_eq!(header("Click"), Some("https://o.example/open/abc"));
        assert_eq!(header("Actions"), Some("view, Open, https://o.example/open/abc, clear=true"));
        assert!(header("Title").is_some_and(|title| title.is_ascii() && !title.contains(['\r', '\n'])));
        assert_eq!(String::from_utf8_lossy(&body), notice.text);
        notice.link = Some("https://o.example/a, clear=false; b".to_owned());
        assert!(pushed(&notice).0.iter().all(|(name, _)| name != "Click" && name != "Actions"));
        notice.on = Occasion::MissionDone;
        assert_eq!(pushed(&notice).0[1].1, "default");
    }
}
