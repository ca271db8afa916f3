//! `ostler open`: the dashboard. Opens the HTTP door if it is closed, and a link that lets one browser in.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::Args;
use ostler_client::reply::WayIn;
use ostler_domain::{Reason, Refusal};
use qrcode::{QrCode, render::unicode::Dense1x2};
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// The page to begin with, such as /sessions or /missions
    #[arg(value_name = "PAGE", default_value = "/", hide_default_value = true)]
    page: String,
    /// Print the link instead of opening a browser; it works once, for five minutes
    #[arg(long)]
    print: bool,
    /// For a phone: show the link as a QR code, by the first name of http.allowed_hosts
    #[arg(long, conflicts_with = "print")]
    phone: bool,
    /// Close the door again and turn all browsers out; tokens stay
    #[arg(long, conflicts_with_all = ["page", "print", "phone"])]
    close: bool,
}

#[derive(Serialize)]
struct OpenForm<'a> {
    link: &'a str,
    address: &'a str,
    expires: String,
    allowed_hosts: &'a [String],
}

#[derive(Serialize)]
struct ClosedForm {
    was_open: bool,
}

pub(crate) async fn run(app: &App, args: OpenArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    if args.close {
        let was_open = client.close_http().await?;
        if app.ui.is_json() {
            app.ui.json(&ClosedForm { was_open })?;
        } else {
            app.ui.data(&Line::of(if was_open {
                "the dashboard is closed"
            } else {
                "the dashboard was closed"
            }))?;
        }
        return Ok(exit_code::OK);
    }
    let mut way = client.open_http(&args.page).await?;
    if args.phone {
        way.link = elsewhere(&way)?;
    }
    if app.ui.is_json() {
        let expires = words::rfc3339(way.expires);
        let form =
            OpenForm { link: &way.link, address: &way.address, expires, allowed_hosts: &way.allowed_hosts };
        app.ui.json(&form)?;
        return Ok(exit_code::OK);
    }
    if args.phone {
        app.ui.data_lines(&qr(&way.link)?.iter().map(Line::of).collect::<Vec<_>>())?;
        app.ui.data(&Line::of(&way.link))?;
        app.ui.remark(&Line::new().faint("it lets one browser in, once, within five minutes"));
        return Ok(exit_code::OK);
    }
    lead_in(app, &way, args.print)?;
    Ok(exit_code::OK)
}

/// Opens a browser, where there is one; else says where to go.
pub(crate) fn lead_in(app: &App, way: &WayIn, print: bool) -> Result<(), Failure> {
    let browser = if print || !app.ui.terminals().stdout_is_terminal { None } else { browser() };
    // The link goes to the browser only: whoever sees the screen could follow it first.
    if browser.is_some_and(|browser| opens(&browser, &way.link)) {
        app.ui.data(&Line::of("opened in your browser: ").with(Tone::Accent, &way.address))?;
    } else {
        app.ui.data(&Line::of(&way.link))?;
        app.ui.remark(&Line::new().faint("it lets one browser in, once, within five minutes"));
    }
    Ok(())
}

/// The link by the name under which a phone reaches this machine.
fn elsewhere(way: &WayIn) -> Result<String, Refusal> {
    let own = way.address.strip_prefix("http://").unwrap_or(&way.address);
    let Some(host) = way.allowed_hosts.first() else {
        return Err(Refusal::new(Reason::WrongState, "a phone has no way to this dashboard yet")
            .because(format!(
                "it listens on {own}, which only this machine reaches: a tunnel or a proxy that speaks HTTPS has to lead there, and its name has to be known"
            ))
            .hint("ostler config set http.allowed_hosts '[\"NAME\"]'", "names it; every other name is refused")
            .hint(format!("ostler config set http.listen {own}"), "keeps the port that the tunnel leads to"));
    };
    let path = way.link.strip_prefix(&way.address).unwrap_or_default();
    Ok(format!("https://{host}{path}"))
}

/// A link as a picture of blocks: light on dark, as terminals are.
fn qr(link: &str) -> Result<Vec<String>, Refusal> {
    let code = QrCode::new(link.as_bytes()).map_err(|error| Refusal::internal(error.to_string()))?;
    let picture = code
        .render::<Dense1x2>()
        .dark_color(Dense1x2::Light)
        .light_color(Dense1x2::Dark)
        .quiet_zone(true)
        .build();
    Ok(picture.lines().map(str::to_owned).collect())
}

/// What opens a page here; none where there is no screen.
fn browser() -> Option<PathBuf> {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some());
    if let Some(named) = env::var_os("BROWSER").filter(|named| !named.is_empty()) {
        return Some(PathBuf::from(named));
    }
    let dirs = env::var_os("PATH").filter(|_| has_screen)?;
    env::split_paths(&dirs).map(|dir| dir.join("xdg-open")).find(|path| path.is_file())
}

fn opens(browser: &Path, link: &str) -> bool {
    let quiet = || Stdio::null();
    let started = Command::new(browser).arg(link).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    // It hands the link on and ends; a browser that stays is left to itself.
    started.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(allowed_hosts: &[&str]) -> WayIn {
        WayIn {
            link: "http://127.0.0.1:7878/open/secret".to_owned(),
            address: "http://127.0.0.1:7878".to_owned(),
            expires: ostler_domain::Time::from_micros(0),
            allowed_hosts: allowed_hosts.iter().map(|host| (*host).to_owned()).collect(),
        }
    }

    #[test]
    fn a_phone_comes_by_the_name_of_the_tunnel_or_hears_what_is_missing() {
        assert_eq!(elsewhere(&way(&["desk.example:8443"])).unwrap(), "https://desk.example:8443/open/secret");
        let missing = elsewhere(&way(&[])).unwrap_err();
        assert!(missing.hints.iter().any(|hint| hint.command.contains("http.allowed_hosts")), "{missing}");
    }

    #[test]
    fn a_link_is_a_square_of_blocks() {
        let picture = qr("https://desk.example/open/secret").unwrap();
        let wide = picture[0].chars().count();
        assert!(picture.iter().all(|line| line.chars().count() == wide) && picture.len() * 2 >= wide);
        assert!(picture.iter().flat_map(|line| line.chars()).all(|c| " ▀▄█".contains(c)));
    }
}
