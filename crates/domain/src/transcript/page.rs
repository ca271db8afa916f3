//! A transcript as one page for a browser: no scripts, nothing from elsewhere, light or dark as the reader has it. Every
//! text in it is escaped.

use super::{
    Picture,
    markdown::html,
    story::{Shown, answer_line, picture_line, spent_line},
};
use crate::{
    image::{Image, base64, is_harmless},
    limits::PAGE_IMAGE_BYTES,
};

/// What stands before all entries of a page with this title.
pub fn page_begin(title: &str) -> String {
    BEGIN.replacen("<title>", &format!("<title>{}", html(title)), 1)
}

const BEGIN: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title></title>
<style>
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fdfdfc; --faint: #63676e; --line: #dfe1e4; --told: #eef3fb; --tool: #f5f5f3; --bad: #a4262c; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe2e6; --paper: #16181b; --faint: #989ea7; --line: #33373d; --told: #1d2735; --tool: #1e2124; --bad: #f1797f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 54rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.3rem; margin: 0 0 .2rem; }
h2 { font-size: .95rem; margin: 0 0 .4rem; }
h2 time, .title, .spent, .remark { color: var(--faint); font-size: .85rem; font-weight: normal; }
.told { background: var(--told); border-radius: .5rem; margin: 2rem 0 1rem; padding: .8rem 1rem; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.said { margin: 1rem 0; }
.remark { border-left: 3px solid var(--line); margin: .8rem 0; padding-left: .7rem; overflow-wrap: anywhere; }
.bad { color: var(--bad); border-color: var(--bad); }
img { display: block; margin: .6rem 0; max-width: 100%; max-height: 36rem; border: 1px solid var(--line); border-radius: .4rem; }
details { background: var(--tool); border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0; }
summary { cursor: pointer; padding: .35rem .7rem; overflow-wrap: anywhere; }
summary code { color: var(--faint); }
summary.bad { color: var(--bad); }
pre { border-top: 1px solid var(--line); margin: 0; max-height: 36rem; overflow: auto; padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code, pre { font: .85rem/1.45 ui-monospace, monospace; }
</style>
</head>
<body>
<main>
"#;

/// And behind them.
pub const PAGE_END: &str = "</main>\n</body>\n</html>\n";

/// One thing of the page.
pub fn page_entry(shown: &Shown) -> String {
    match shown {
        Shown::Title { name, id, cwd, at } => format!(
            "<header><h1>{}</h1><p class=\"title\"><code>{}</code> · <code>{}</code> · {at}</p></header>\n",
            html(name),
            html(id),
            html(cwd)
        ),
        Shown::Told { by, at, text } => format!(
            "<section class=\"told\"><h2>{} <time>{at}</time></h2><div class=\"text\">{}</div></section>\n",
            html(by),
            html(text)
        ),
        Shown::Said { text } => format!("<div class=\"said text\">{}</div>\n", html(text.trim())),
        Shown::Thought { text } => folded("<i>thinking</i>", text, false),
        Shown::Called { tool, line, arguments } => {
            folded(&format!("<b>{}</b> <code>{}</code>", html(tool), html(line)), arguments, false)
        }
        Shown::Answered { tool, text, exit, is_error } => {
            folded(&html(&answer_line(tool, *exit, *is_error)), text, *is_error)
        }
        Shown::Picture(picture) => self::picture(picture),
        Shown::Spent { model, tokens, cost } => {
            format!("<p class=\"spent\">{}</p>\n", html(&spent_line(model, *tokens, *cost)))
        }
        Shown::Remark { text, is_bad } => {
            let class = if *is_bad { "remark bad" } else { "remark" };
            format!("<p class=\"{class}\">{}</p>\n", html(text))
        }
    }
}

/// Small ones of a kind that is nothing but a picture are in the page; of others it says what they are.
fn picture(picture: &Picture) -> String {
    let line = html(&picture_line(picture));
    // What stands in an attribute is of our own making: bytes, written anew.
    let image = picture.data.as_deref().and_then(|data| Image::from_base64(&picture.mime_type, data));
    let small = image.filter(|image| is_harmless(&image.mime) && image.bytes <= PAGE_IMAGE_BYTES);
    match small.as_ref().and_then(|image| Some((&image.mime, base64(image.data()?)))) {
        Some((mime, data)) => format!("<img alt=\"{line}\" src=\"data:{mime};base64,{data}\">\n"),
        None => format!("<p class=\"remark\">{line}</p>\n"),
    }
}

fn folded(summary: &str, text: &str, is_bad: bool) -> String {
    let class = if is_bad { " class=\"bad\"" } else { "" };
    format!("<details><summary{class}>{summary}</summary><pre>{}</pre></details>\n", html(text.trim_end()))
}
