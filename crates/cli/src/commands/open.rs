//! `ostler open`: the dashboard. Opens the HTTP door if it is closed, and a link that lets one browser in.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clap::Args;
use ostler_client::reply::WayIn;
use ostler_domain::{Reason, Refusal};
use qrcode::{Color, EcLevel, QrCode};
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
        // The code stands last, so that all of it is on the screen.
        app.ui.data(&Line::of(&way.link))?;
        app.ui.remark(&Line::new().faint("it lets one browser in, once, within five minutes"));
        let room = app.ui.terminals().rows.zip(app.ui.terminals().out.width);
        let picture = qr(&way.link, room)?;
        app.ui.data_lines(&picture.iter().map(Line::of).collect::<Vec<_>>())?;
        if let Some(wants) = too_large(&picture, room) {
            app.ui.remark(&Line::toned(Tone::Warn, wants));
        }
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

/// Light around a code: what readers are promised, and what they do with.
const MARGINS: [i32; 3] = [4, 2, 1];

/// A link as a picture of blocks: light on dark, as terminals are. As large as there is room for, in rows and columns, of
/// which a row is the prompt's.
fn qr(link: &str, room: Option<(usize, usize)>) -> Result<Vec<String>, Refusal> {
    // Nothing soils a screen: the least correction makes the smallest picture.
    let code = QrCode::with_error_correction_level(link.as_bytes(), EcLevel::L);
    let code = code.map_err(|error| Refusal::internal(error.to_string()))?;
    let fits = |picture: &Vec<String>| too_large(picture, room).is_none();
    let [whole, less, least] = MARGINS.map(|margin| picture(&code, margin));
    Ok([whole, less].into_iter().find(fits).unwrap_or(least))
}

fn picture(code: &QrCode, margin: i32) -> Vec<String> {
    let (width, colours) = (code.width(), code.to_colors());
    let end = i32::try_from(width).unwrap_or_default() + margin;
    let is_light = |x: i32, y: i32| {
        let place = usize::try_from(x).ok().zip(usize::try_from(y).ok());
        let inside = place.filter(|(x, y)| *x < width && *y < width);
        inside.is_none_or(|(x, y)| colours.get(y * width + x) != Some(&Color::Dark))
    };
    let block = |x: i32, y: i32| match (is_light(x, y), y + 1 < end && is_light(x, y + 1)) {
        (true, true) => '█',
        (true, false) => '▀',
        (false, true) => '▄',
        (false, false) => ' ',
    };
    let row = |y: i32| (-margin..end).map(|x| block(x, y)).collect();
    (-margin..end).step_by(2).map(row).collect()
}

/// What a picture wants of the terminal, where that is too small for it.
fn too_large(picture: &[String], room: Option<(usize, usize)>) -> Option<String> {
    let (rows, columns) = room?;
    let (high, wide) = (picture.len() + 1, picture.first().map_or(0, |line| line.chars().count()));
    (high > rows || wide > columns).then(|| {
        format!("it wants {high} rows of {wide} columns, and here are {rows} of {columns}: make the terminal larger")
    })
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
        let picture = qr("https://desk.example/open/secret", None).unwrap();
        let wide = picture[0].chars().count();
        assert!(picture.iter().all(|line| line.chars().count() == wide) && picture.len() * 2 >= wide);
        assert!(picture.iter().flat_map(|line| line.chars()).all(|c| " ▀▄█".contains(c)));
    }

    #[test]
    fn a_code_is_as_large_as_the_terminal_has_room_for_and_says_where_it_has_none() {
        // As long as links are by a usual name.
        let link = format!("https://laptop.tail0abc1.ts.net/open/{}", "x".repeat(43));
        let of = |rows: usize| {
            let picture = qr(&link, Some((rows, 80))).unwrap();
            let wants = too_large(&picture, Some((rows, 80)));
            (picture.len(), wants)
        };
        let (high, wants) = of(50);
        assert!(wants.is_none() && of(24).1.is_none(), "{high}");
        assert!(of(high).0 < high, "with less around it");
        assert!(of(high).1.is_none() && of(12).1.unwrap().contains("here are 12 of 80"), "{high}");
        assert!(too_large(&qr(&link, None).unwrap(), None).is_none(), "a file has room");
    }
}
