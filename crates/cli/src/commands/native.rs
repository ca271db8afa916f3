//! `ostler resume --native`: the provider's own command that goes on with a conversation.

use ostler_client::{Client, reply::NativeCommand};
use ostler_domain::text::shell_word;
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Serialize)]
struct NativeForm<'a> {
    session: String,
    working_dir: &'a str,
    env: &'a std::collections::BTreeMap<String, String>,
    words: &'a [String],
    command: String,
}

pub(super) async fn run(app: &App, client: &Client, who: &[String]) -> Result<u8, Failure> {
    let [who] = who else {
        return Err(Failure::usage("--native is about one session: name one"));
    };
    let session = app.session(client, who).await?;
    let native = client.native_command(&session.id.to_string()).await?;
    let command = line(&native);
    if app.ui.is_json() {
        let NativeCommand { working_dir, env, words } = &native;
        let session = session.id.to_string();
        app.ui.json(&NativeForm { session, working_dir, env, words, command })?;
        return Ok(exit_code::OK);
    }
    app.ui.text(&command)?;
    let remark = Line::new()
        .faint("outside the sandbox, with your own login or key; nothing of it is recorded. ")
        .with(Tone::Accent, format!("ostler resume {}", session.id.short()))
        .faint(" goes on here");
    app.ui.remark(&remark);
    Ok(exit_code::OK)
}

/// As a shell takes it.
fn line(native: &NativeCommand) -> String {
    let mut parts = vec![format!("cd {} &&", shell_word(&native.working_dir))];
    parts.extend(native.env.iter().map(|(name, value)| format!("{name}={}", shell_word(value))));
    parts.extend(native.words.iter().map(|word| shell_word(word)));
    parts.join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_it_as_it_is_meant() {
        let native = NativeCommand {
            working_dir: "/srv/it's here".to_owned(),
            env: [("CODEX_HOME".to_owned(), "/state/homes/cnv 1".to_owned())].into(),
            words: ["codex", "resume", "-c", "model_provider=openai", "0-1"].map(str::to_owned).to_vec(),
        };
        let expected = "cd '/srv/it'\\''s here' && CODEX_HOME='/state/homes/cnv 1' \
                        codex resume -c model_provider=openai 0-1\n";
        assert_eq!(line(&native), expected);
    }
}
