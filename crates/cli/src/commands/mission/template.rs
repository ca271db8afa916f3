//! `ostler mission template`: plans that come with Ostler.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use ostler_domain::{
    Refusal,
    mission::plan::{Parameter, Template, templates},
    text::{nearest, one_line},
};
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, Tone},
};

#[derive(Debug, Args)]
pub(super) struct TemplateArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List them, with their parameters
    #[command(alias = "list")]
    Ls(ListArgs),
    /// Print one as a file to start from
    #[command(alias = "get")]
    Show {
        /// One of those that are listed
        #[arg(value_name = "TEMPLATE")]
        name: String,
    },
}

#[derive(Serialize)]
struct TemplateForm {
    name: &'static str,
    about: &'static str,
    parameters: Vec<ParameterForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'static str>,
}

#[derive(Serialize)]
struct ParameterForm {
    name: String,
    about: String,
    default: Option<String>,
}

impl TemplateForm {
    fn new(template: &Template, with_text: bool) -> Self {
        let one = |(name, parameter): (String, Parameter)| ParameterForm {
            name,
            about: parameter.about,
            default: parameter.default,
        };
        Self {
            name: template.name,
            about: template.about(),
            parameters: template.parameters().into_iter().map(one).collect(),
            text: with_text.then_some(template.text),
        }
    }
}

pub(super) async fn run(app: &App, args: TemplateArgs) -> Result<u8, Failure> {
    match args.verb {
        Verb::Ls(args) => return listing::run(app, None, &args, &Templates { args: &args }).await,
        Verb::Show { name } => {
            let template = Template::find(&name).ok_or_else(|| unknown(&name))?;
            match app.ui.is_json() {
                true => app.ui.json(&TemplateForm::new(&template, true))?,
                false => app.ui.text(template.text)?,
            }
        }
    }
    Ok(exit_code::OK)
}

/// With nothing in it yet.
pub(in crate::commands) fn table() -> Table {
    Table::new([Column::new("TEMPLATE"), Column::new("PARAMETERS"), Column::new("WHAT").gives_way_to(24)])
}

struct Templates<'a> {
    args: &'a ListArgs,
}

impl List for Templates<'_> {
    type Row = &'static Template;
    const ROWS: &'static str = "templates";

    async fn find(&self) -> Result<Found<Self::Row>, Failure> {
        Ok(Found::whole(templates().iter().collect(), self.args.most(None)))
    }

    fn id(&self, template: &Self::Row) -> String {
        template.name.to_owned()
    }

    fn form(&self, template: &Self::Row) -> impl Serialize {
        TemplateForm::new(template, false)
    }

    async fn screen(&self, found: &Found<Self::Row>) -> Result<Screen, Failure> {
        let mut table = table();
        for template in &found.rows {
            table.row(vec![
                Line::new().strong(template.name),
                Line::of(words_of(&template.parameters())),
                Line::of(template.about()),
            ]);
        }
        let first = found.rows.first().map(|first| {
            let command = format!("ostler mission plan {} -p goal=\"…\"", first.name);
            Line::of("  ").with(Tone::Accent, command).faint("   what it would come to")
        });
        Ok(Screen { table: Some(table), remarks: first.into_iter().collect(), ..Screen::default() })
    }
}

/// `goal builders=3`: those that must be said, and the values of the others.
fn words_of(parameters: &BTreeMap<String, Parameter>) -> String {
    let one = |(name, parameter): (&String, &Parameter)| match &parameter.default {
        Some(default) => format!("{name}={}", one_line(default, 20)),
        None => name.clone(),
    };
    let (said, rest): (Vec<_>, Vec<_>) = parameters.iter().partition(|(_, one)| one.default.is_none());
    said.into_iter().chain(rest).map(one).collect::<Vec<_>>().join(" ")
}

fn unknown(name: &str) -> Failure {
    let refusal = Refusal::invalid(format!("there is no template \"{}\"", one_line(name, 64)));
    let refusal = match nearest(name, templates().iter().map(|template| template.name)) {
        Some(meant) => refusal.hint(format!("ostler mission template show {meant}"), "may be what you meant"),
        None => refusal,
    };
    refusal.hint("ostler mission template ls", "lists them").into()
}
