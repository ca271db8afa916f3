//! What holds, and who says so.

use std::{env, path::Path};

use ostler_domain::{
    Refusal,
    config::{KEYS, Kind, find},
    policy::size_text,
    provider::{ACP_PREFIX, BUILT_IN},
    text::one_line,
};
use serde::Serialize;
use serde_json::{Value as Json, json};
use toml_edit::{DocumentMut, Item, Value};

use super::{file, joined, words};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, to_json},
};

/// Variables that say something about this machine's Ostler.
const VARIABLES: [&str; 7] = [
    "OSTLER_HOME",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "OSTLER_NO_AUTOSTART",
    "OSTLER_CAMPAIGN",
    "OSTLER_LOG",
];

/// One setting that holds.
#[derive(Debug, PartialEq, Serialize)]
struct Row {
    key: String,
    value: Json,
    origin: Origin,
}

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Origin {
    Default,
    File,
    /// A variable of this process: the daemon may have been started with others.
    Env,
}

impl Origin {
    const fn word(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::File => "file",
            Origin::Env => "env",
        }
    }
}

#[derive(Serialize)]
struct ShowForm<'a> {
    path: String,
    settings: &'a [Row],
}

pub(super) async fn show(app: &App, path: &Path, key: Option<&str>, args: &ListArgs) -> Result<u8, Failure> {
    listing::run(app, None, args, &Settings { path, key, most: args.most(None) }).await
}

/// The list of what holds.
struct Settings<'a> {
    path: &'a Path,
    /// Only this setting or section.
    key: Option<&'a str>,
    most: Option<u32>,
}

impl List for Settings<'_> {
    type Row = Row;
    const ROWS: &'static str = "settings";

    async fn find(&self) -> Result<Found<Row>, Failure> {
        let text = file::text(self.path)?;
        // What the daemon would not start with does not hold.
        file::check(&text).map_err(|no| file::unusable(self.path, &no.why.unwrap_or(no.message)))?;
        let document = file::read(self.path)?;
        let set = VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), env::var(name).ok()?)));
        let rows = rows(&document, set);
        let rows = match self.key {
            None => rows,
            Some(key) => within(rows, key)?,
        };
        Ok(Found::whole(rows, self.most))
    }

    fn id(&self, row: &Row) -> String {
        row.key.clone()
    }

    fn form(&self, row: &Row) -> impl Serialize {
        row
    }

    fn object(&self, found: &Found<Row>) -> Option<String> {
        Some(to_json(&ShowForm { path: self.path.to_string_lossy().into_owned(), settings: &found.rows }))
    }

    async fn screen(&self, found: &Found<Row>) -> Result<Screen, Failure> {
        let where_to = format!("{} · ostler config set KEY VALUE", self.path.display());
        Ok(Screen {
            table: Some(table(&found.rows)),
            remarks: vec![Line::new().faint(where_to)],
            ..Screen::default()
        })
    }
}

fn within(rows: Vec<Row>, key: &str) -> Result<Vec<Row>, Refusal> {
    let key = joined(&words(key)?);
    let section = format!("{key}.");
    let found: Vec<Row> =
        rows.into_iter().filter(|row| row.key == key || row.key.starts_with(&section)).collect();
    if found.is_empty() { Err(not_set(&key)) } else { Ok(found) }
}

/// Settings by name, those that have none of their own behind them, and the environment.
fn rows(document: &DocumentMut, variables: impl Iterator<Item = (String, String)>) -> Vec<Row> {
    let at = |key: &str| key.split('.').try_fold(document.as_item(), |item, part| item.get(part));
    let known = KEYS.iter().map(|key| match at(key.name) {
        Some(item) => Row { key: key.name.to_owned(), value: json_of(item), origin: Origin::File },
        None => {
            Row { key: key.name.to_owned(), value: usual(key.kind, key.default), origin: Origin::Default }
        }
    });
    let mut rows: Vec<Row> = known.collect();
    for section in [&["network", "presets"][..], &["nodes"], &["providers"]] {
        let found = section.iter().try_fold(document.as_item(), |item, part| item.get(part));
        if let Some(item) = found {
            let path = section.iter().map(|part| (*part).to_owned()).collect();
            leaves(item, path, &mut rows);
        }
    }
    rows.extend(variables.map(|(key, value)| Row { key, value: value.into(), origin: Origin::Env }));
    rows
}

/// Every setting below a section.
fn leaves(item: &Item, path: Vec<String>, rows: &mut Vec<Row>) {
    match item.as_table_like() {
        Some(table) if find(&path).is_err() => {
            for (name, below) in table.iter() {
                let path = path.iter().cloned().chain([name.to_owned()]).collect();
                leaves(below, path, rows);
            }
        }
        _ => rows.push(Row { key: joined(&path), value: json_of(item), origin: Origin::File }),
    }
}

fn usual(kind: Kind, text: &str) -> Json {
    match kind {
        Kind::Bytes | Kind::Number => text.parse::<u64>().map_or_else(|_| text.into(), Json::from),
        Kind::Switch => text.parse::<bool>().map_or_else(|_| text.into(), Json::from),
        _ => text.into(),
    }
}

fn json_of(item: &Item) -> Json {
    match item {
        Item::Value(value) => json_of_value(value),
        Item::Table(table) => table.iter().map(|(key, item)| (key.to_owned(), json_of(item))).collect(),
        Item::ArrayOfTables(tables) => tables
            .iter()
            .map(|table| table.iter().map(|(key, item)| (key.to_owned(), json_of(item))).collect::<Json>())
            .collect(),
        Item::None => Json::Null,
    }
}

fn json_of_value(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(switch) => (*switch.value()).into(),
        Value::Datetime(time) => time.value().to_string().into(),
        Value::Array(list) => list.iter().map(json_of_value).collect(),
        Value::InlineTable(table) => {
            table.iter().map(|(key, value)| (key.to_owned(), json_of_value(value))).collect()
        }
    }
}

fn table(rows: &[Row]) -> Table {
    let value = Column::new("VALUE").gives_way_to(60);
    let mut table = Table::new([Column::new("SETTING").also("key"), value, Column::new("BY")]);
    for row in rows {
        let text = row.value.as_str().map_or_else(|| row.value.to_string(), str::to_owned);
        let text = as_people_write(&row.key, &row.value).unwrap_or(text);
        let is_default = row.origin == Origin::Default;
        let value = if is_default { Line::new().faint(text) } else { Line::new().strong(text) };
        let by = if is_default { Line::new().faint(row.origin.word()) } else { Line::of(row.origin.word()) };
        table.row(vec![Line::of(&row.key), value, by]);
    }
    table
}

/// `4GiB`, as it may be typed; none for what is no size.
fn as_people_write(key: &str, value: &Json) -> Option<String> {
    let known = KEYS.iter().find(|known| known.name == key && known.kind == Kind::Bytes);
    known.and_then(|_| value.as_u64()).map(size_text)
}

/// What the file says, as it says it; where it says nothing, what holds all the same.
pub(super) fn get(app: &App, document: &DocumentMut, key: Option<&str>) -> Result<u8, Failure> {
    let path = key.map(words).transpose()?.unwrap_or_default();
    if let Some(section) = key.filter(|_| is_known_section(&path)) {
        return section_of(app, document, section);
    }
    let found = path.iter().try_fold(document.as_item(), |item, part| item.get(part));
    let (text, origin) = match found {
        Some(item) => (as_written(item, document, key), Origin::File),
        None => (usual_of(&path).ok_or_else(|| not_set(key.unwrap_or_default()))?, Origin::Default),
    };
    if app.ui.is_json() {
        app.ui.json(&json!({ "key": key, "value": text, "origin": origin }))?;
    } else if !text.is_empty() {
        app.ui.text(&format!("{text}\n"))?;
    }
    Ok(exit_code::OK)
}

/// Whether settings that have a default stand below it.
fn is_known_section(path: &[String]) -> bool {
    let section = format!("{}.", joined(path));
    !path.is_empty() && KEYS.iter().any(|key| key.name.starts_with(&section))
}

/// Each setting of a section with what holds.
fn section_of(app: &App, document: &DocumentMut, section: &str) -> Result<u8, Failure> {
    let rows = within(rows(document, std::iter::empty()), section)?;
    if app.ui.is_json() {
        app.ui.json(&json!({ "key": section, "settings": rows }))?;
        return Ok(exit_code::OK);
    }
    for row in rows {
        let value = row.value.as_str().map_or_else(|| row.value.to_string(), str::to_owned);
        app.ui.data(&Line::of(format!("{} = {value}", row.key)))?;
    }
    Ok(exit_code::OK)
}

fn as_written(item: &Item, document: &DocumentMut, key: Option<&str>) -> String {
    let text = match item {
        _ if key.is_none() => document.to_string(),
        // By itself a section is written without those below it.
        Item::Table(section) => {
            let mut section = section.clone();
            section.decor_mut().clear();
            DocumentMut::from(section).to_string()
        }
        Item::Value(Value::String(text)) => return text.value().to_owned(),
        // What is written beside a value is no part of it.
        Item::Value(value) => value.clone().decorated("", "").to_string(),
        item => item.to_string(),
    };
    text.trim().to_owned()
}

fn usual_of(path: &[String]) -> Option<String> {
    let name = joined(path);
    KEYS.iter().find(|key| key.name == name).map(|key| key.default.to_owned())
}

/// What has settings in it, and is none itself.
fn is_section(path: &[String]) -> bool {
    let inside = format!("{}.", joined(path));
    let is_known = |name: &str| BUILT_IN.contains(&name) || name.starts_with(ACP_PREFIX);
    KEYS.iter().any(|key| key.name.starts_with(&inside))
        || matches!(path, [first, name] if first == "providers" && is_known(name))
}

fn not_set(key: &str) -> Refusal {
    let path: Vec<String> = key.split('.').map(str::to_owned).collect();
    let refusal = match find(&path) {
        Err(no) if !is_section(&path) => {
            let refusal = Refusal::invalid(format!("there is no setting \"{}\"", one_line(key, 80)));
            let refusal = refusal.because(no.why);
            match no.nearest {
                Some(meant) => refusal.hint(format!("ostler config get {meant}"), "may be what you meant"),
                None => refusal,
            }
        }
        _ => Refusal::invalid(format!("{key} is not set")),
    };
    refusal.hint("ostler config show", "prints everything that holds")
}

/// With nothing in it yet.
pub(in crate::commands) fn empty_table() -> Table {
    table(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Look;

    #[test]
    fn what_is_no_setting_is_not_said_to_be_unset() {
        let said = |key: &str| not_set(key).message;
        for wrong in ["nope", "watchdog.silnet", "providers.nope", "providers.codex.modle"] {
            assert_eq!(said(wrong), format!("there is no setting \"{wrong}\""));
        }
        for right in ["providers.codex", "providers.codex.model", "watchdog"] {
            assert_eq!(said(right), format!("{right} is not set"));
        }
        let near = not_set("watchdog.silnet");
        assert_eq!(near.hints[0].command, "ostler config get watchdog.silent");
    }

    #[test]
    fn a_section_is_printed_with_those_below_it() {
        let document: DocumentMut = "[limits]\ntape = 1\n# of codex\n[providers.codex]\nmodel = \"m\"\n\
            [providers.codex.env]\nA = \"b\"\n[providers.codex.profiles.work]\nlogin = true\n"
            .parse()
            .unwrap();
        let printed = |key: &str| {
            let item = key.split('.').try_fold(document.as_item(), |item, part| item.get(part)).unwrap();
            as_written(item, &document, Some(key))
        };
        assert_eq!(
            printed("providers.codex"),
            "model = \"m\"\n[env]\nA = \"b\"\n[profiles.work]\nlogin = true"
        );
        assert_eq!(printed("providers.codex.env"), "A = \"b\"");
        assert_eq!(
            (printed("providers.codex.model"), printed("limits.tape")),
            ("m".to_owned(), "1".to_owned())
        );
        assert_eq!(as_written(document.as_item(), &document, None), document.to_string().trim());
    }

    #[test]
    fn a_comment_beside_a_value_is_no_part_of_it() {
        let text = "# why\n[limits]\nsessions = 8 # eight\n[log]\nformat = \"json\" # for the collector\n[otel]\ncontent = true# no\n";
        let document: DocumentMut = text.parse().unwrap();
        let at = |section: &str, key: &str| as_written(&document[section][key], &document, Some(key));
        assert_eq!(
            [at("limits", "sessions"), at("log", "format"), at("otel", "content")],
            ["8", "json", "true"]
        );
        assert_eq!(as_written(document.as_item(), &document, None), text.trim());
    }

    #[test]
    fn each_value_has_its_origin() {
        let document: DocumentMut =
            "[limits]\ntape = 1024\n[providers.codex]\nmodel = \"gpt-5.5\"\nargs = [\"-x\"]\n\
            [providers.codex.env]\nA = \"b\"\n[[hooks]]\non = \"failed\"\nrun = [\"page\"]\n"
                .parse()
                .unwrap();
        let rows = rows(&document, [("OSTLER_LOG".to_owned(), "debug".to_owned())].into_iter());
        let row = |key: &str| {
            let row = rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("no {key}"));
            (row.value.clone(), row.origin)
        };
        assert_eq!(row("limits.tape"), (json!(1024), Origin::File));
        let shown = |key: &str| as_people_write(key, &row(key).0);
        assert_eq!(shown("limits.tape").as_deref(), Some("1KiB"));
        assert_eq!((shown("log.size").as_deref(), shown("log.files")), (Some("16MiB"), None));
        assert!(table(&rows).only(&["key".to_owned()]).is_ok(), "as it is called in JSON");
        assert_eq!(row("watchdog.silent"), (json!("10m"), Origin::Default));
        assert_eq!(row("limits.resume_after_rate_limit"), (json!(true), Origin::Default));
        assert_eq!(row("providers.codex.model"), (json!("gpt-5.5"), Origin::File));
        assert_eq!(row("providers.codex.env.A"), (json!("b"), Origin::File));
        assert_eq!(row("hooks"), (json!([{"on": "failed", "run": ["page"]}]), Origin::File));
        assert_eq!(row("OSTLER_LOG"), (json!("debug"), Origin::Env));
        let look = Look::plain(Some(100));
        let shown: Vec<String> = table(&rows).lines(&look).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(shown.join("\n"));
        assert_eq!(within(rows, "providers.codex").unwrap().len(), 3);
    }
}
