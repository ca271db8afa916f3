//! What became of something said.

use ostler_domain::Mode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::shape;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Sent")]
pub struct SentForm<'a> {
    pub message: String,
    pub receipt: &'static str,
    #[schemars(with = "shape::Mode")]
    pub mode: Mode,
    pub session: String,
    pub name: &'a str,
    pub woke: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'a str>,
    /// The conversation began anew for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_conversation: Option<String>,
}
