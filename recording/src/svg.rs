//! From pictures to one that moves: every row is drawn once and used in as many frames as it is seen in.

use std::{collections::HashMap, fmt::Write as _};

use crate::film::{Frame, Look, Row};

/// Of a character of the font, in the picture's units.
const WIDTH: f64 = 8.4;
const HEIGHT: u32 = 18;
const MARGIN: u32 = 16;
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d7dae0";
/// The sixteen colours that terminals have.
const COLORS: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0", "#5c6370",
    "#ef7f88", "#a9d18a", "#f0cf8e", "#74bdf5", "#d28ae6", "#68c4d0", "#ffffff",
];

/// Draws the frames one after the other, for ever.
pub(crate) fn draw(frames: &[Frame], columns: u16, rows: u16, title: &str) -> String {
    let (width, height) =
        ((f64::from(columns) * WIDTH) as u32 + 2 * MARGIN, u32::from(rows) * HEIGHT + 2 * MARGIN);
    let mut drawn: HashMap<&Row, usize> = HashMap::new();
    let (mut defs, mut shown) = (String::new(), String::new());
    let total: f64 = frames.iter().map(|frame| frame.lasts.as_secs_f64()).sum();
    let mut began = 0.0;
    for frame in frames {
        let mut group = String::new();
        for (place, row) in frame.rows.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
            let next = drawn.len();
            let number = *drawn.entry(row).or_insert_with(|| {
                let _ = writeln!(defs, "<g id=\"r{next}\">{}</g>", text(row));
                next
            });
            let y = u32::try_from(place).unwrap_or(0) * HEIGHT;
            let _ = write!(group, "<use href=\"#r{number}\" y=\"{y}\"/>");
        }
        let ends = began + frame.lasts.as_secs_f64();
        let _ = match frames.len() {
            // What does not move is simply there.
            1 => writeln!(shown, "<g>{group}</g>"),
            _ => writeln!(
                shown,
                "<g visibility=\"hidden\">{}{group}</g>",
                visible(began / total, ends / total, total)
            ),
        };
        began = ends;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\" fill=\"{FOREGROUND}\">\n\
         <title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n<defs>\n{defs}</defs>\n\
         <g transform=\"translate({MARGIN} {})\">\n{shown}</g>\n</svg>\n",
        MARGIN + HEIGHT - 5
    )
}

/// Seen from one part of the whole to another.
fn visible(from: f64, to: f64, seconds: f64) -> String {
    let (mut values, mut times) = (vec!["visible"], vec![0.0]);
    if from > 0.0 {
        (values, times) = (vec!["hidden", "visible"], vec![0.0, from]);
    }
    if to < 0.999_99 {
        values.push("hidden");
        times.push(to);
    }
    let times: Vec<String> = times.iter().map(|time| format!("{time:.5}")).collect();
    format!(
        "<animate attributeName=\"visibility\" calcMode=\"discrete\" dur=\"{seconds:.2}s\" repeatCount=\"indefinite\" values=\"{}\" keyTimes=\"{}\"/>",
        values.join(";"),
        times.join(";")
    )
}

fn text(row: &Row) -> String {
    let stretch = |(column, text, look): &(u16, String, Look)| {
        let x = f64::from(*column) * WIDTH;
        // As long as the terminal would draw it, whatever font there is.
        let length = text.chars().count() as f64 * WIDTH;
        format!("<text x=\"{x:.1}\" textLength=\"{length:.1}\"{}>{}</text>", attributes(*look), escaped(text))
    };
    row.iter().map(stretch).collect()
}

fn attributes(look: Look) -> String {
    let mut attributes = String::new();
    if let Some(color) = look.color.and_then(|color| COLORS.get(usize::from(color))) {
        let _ = write!(attributes, " fill=\"{color}\"");
    }
    if look.bold {
        attributes.push_str(" font-weight=\"bold\"");
    }
    if look.faint {
        attributes.push_str(" opacity=\".6\"");
    }
    attributes
}

fn escaped(text: &str) -> String {
    // Browsers take blanks away, and would draw the rest of the text as wide as all of it; these they leave.
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_row_that_is_seen_twice_is_drawn_once() {
        let row = |text: &str| vec![(0, text.to_owned(), Look::default())];
        let frame = |rows: Vec<Row>| Frame { rows, lasts: Duration::from_secs(1) };
        let drawn = draw(&[frame(vec![row("a<b")]), frame(vec![row("a<b"), row("c")])], 10, 2, "t");
        assert_eq!(drawn.matches("a&lt;b").count(), 1);
        assert_eq!(escaped(" a  b "), "\u{a0}a\u{a0}\u{a0}b\u{a0}");
        assert_eq!(drawn.matches("href=\"#r0\"").count(), 2);
        assert!(drawn.contains("values=\"visible;hidden\" keyTimes=\"0.00000;0.50000\""), "{drawn}");
        assert!(drawn.contains("values=\"hidden;visible\" keyTimes=\"0.00000;0.50000\""), "{drawn}");
    }
}
