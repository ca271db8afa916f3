//! The desktop of whoever runs the daemon, by `notify-send`.

use ostler_domain::{
    limits::DESKTOP_TIME,
    notice::{Hook, Notice},
};

use super::{Tried, hook};

pub(super) async fn tell(notice: &Notice) -> Tried {
    let shown = Hook { run: command(notice), limit: DESKTOP_TIME };
    hook::tell(&shown, notice).await
}

fn command(notice: &Notice) -> Vec<String> {
    let urgency = if notice.is_urgent() { "critical" } else { "normal" };
    let text = [notice.body()].into_iter().chain(notice.link.clone()).collect::<Vec<_>>().join("\n");
    // What begins with a dash is no option behind these two.
    let words = ["notify-send", "--app-name=Ostler", &format!("--urgency={urgency}"), "--", &notice.title()];
    words.into_iter().map(str::to_owned).chain([plain(&text)]).collect()
}

/// Desktops read markup in it.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use ostler_domain::{Time, notice::Occasion};

    use super::*;

    #[test]
    fn what_an_agent_is_called_is_no_option_and_no_markup() {
        let mut notice = Notice::trial(Occasion::Approval, "nod_1", "desk", Time::default());
        notice.agent = "--help".to_owned();
        notice.text = "<b>&".to_owned();
        let command = command(&notice);
        assert_eq!(command[2..], ["--urgency=critical", "--", "--help asks for leave", "&lt;b&gt;&amp;"]);
        notice.on = Occasion::MissionDone;
        assert_eq!(super::command(&notice)[2], "--urgency=normal");
    }
}
