//! The API as OpenAPI describes such things, made from the list that is served and from the types that are read and
//! written there.

use std::{collections::BTreeMap, sync::LazyLock};

use ostler_domain::http::CHANGE_NAME_MOST;
use ostler_form::ErrorForm;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::api::{self, Endpoint, Form, Shape, of};

/// Where an answer's parts are described.
const SCHEMAS: &str = "/components/schemas";

/// The description, as text. `docs/openapi.json` is the same.
pub fn document() -> String {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut written = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| {
            settings.definitions_path = SCHEMAS.into();
            settings.meta_schema = None;
        })
        .into_generator();
    for endpoint in api::endpoints() {
        let operation = operation(&endpoint, &mut written);
        paths.entry(endpoint.path).or_default().insert(endpoint.method.to_owned(), operation);
    }
    let error = of::<ErrorForm<'static>>(&mut written);
    let whole = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ostler",
            "version": "v1",
            "description": "The words, cursors and reasons of the gRPC protocol ostler.v1, in the JSON forms of the command line. Fields are only ever added. Loopback only, and closed until `ostler open`.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": written.take_definitions(true),
            "responses": {
                "Refused": {
                    "description": "Why it was not done",
                    "content": { "application/json": { "schema": error } },
                },
            },
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "`ostler api token add NAME`" },
            },
        },
    });
    // It is made of plain values: writing it cannot fail.
    serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
}

/// What may stand behind the `?` of an operation.
pub(crate) fn parameters_of(id: &str) -> &'static [String] {
    static KNOWN: LazyLock<BTreeMap<&'static str, Vec<String>>> = LazyLock::new(|| {
        let names = |shape: Shape| {
            let schema = asked(shape);
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
        };
        let of = |endpoint: Endpoint| (endpoint.id, endpoint.query.map(names).unwrap_or_default());
        api::endpoints().into_iter().map(of).collect()
    });
    KNOWN.get(id).map(Vec::as_slice).unwrap_or_default()
}

fn operation(endpoint: &Endpoint, written: &mut SchemaGenerator) -> Value {
    let in_path = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" }, "description": "an id, a unique part of one, or a name" })
    });
    let in_query = endpoint.query.map(parameters).unwrap_or_default();
    let in_head = endpoint.body.map(|_| {
        let about = "a name for this change: asked for again by the same name it is answered and not done again, \
                     within a day; another change by that name is refused, REQUEST_CONFLICT";
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": CHANGE_NAME_MOST });
        json!({ "name": "Idempotency-Key", "in": "header", "required": false, "schema": schema, "description": about })
    });
    let parameters: Vec<Value> = in_path.chain(in_query).chain(in_head).collect();
    let mut operation = json!({
        "operationId": endpoint.id,
        "summary": endpoint.about,
        "parameters": parameters,
        "responses": { "200": answer(endpoint.answer, written), "default": { "$ref": "#/components/responses/Refused" } },
    });
    if let Some(body) = endpoint.body {
        let schema = asked(body);
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

/// What is read from a request, in place.
fn asked(shape: Shape) -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = shape(&mut settings.into_generator()).to_value();
    if let Some(object) = schema.as_object_mut() {
        // A comment on the type is for whoever reads the code.
        object.remove("description");
        object.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// The fields of what is read behind the `?`, each a parameter of its own.
fn parameters(shape: Shape) -> Vec<Value> {
    let schema = asked(shape);
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        // What is not there is left out; an address has no null.
        if let Some(kinds) = schema["type"].as_array_mut() {
            kinds.retain(|kind| kind != "null");
            schema["type"] = schema["type"][0].take();
        }
        if let Some(object) =
            schema.as_object_mut().filter(|object| object.get("default") == Some(&Value::Null))
        {
            object.remove("default");
        }
        json!({ "name": name, "in": "query", "required": required(name), "description": about, "schema": schema })
    };
    schema["properties"].as_object().into_iter().flatten().map(parameter).collect()
}

fn answer(form: Form, written: &mut SchemaGenerator) -> Value {
    let page = |rows: &str, row: Value| {
        json!({
            "type": "object",
            "required": [rows, "next_cursor"],
            "properties": {
                rows: { "type": "array", "items": row },
                "next_cursor": { "type": ["string", "null"], "description": "where the next page begins; null at the end" },
            },
        })
    };
    let content = match form {
        Form::One(shape) => json!({ "application/json": { "schema": shape(written) } }),
        Form::Page(rows, shape) => {
            json!({ "application/json": { "schema": page(rows, shape(written).to_value()) } })
        }
        Form::Stream(shape) => {
            let event = shape(written).to_value();
            json!({
                "text/event-stream": { "schema": event },
                "application/json": { "schema": page("events", event) },
            })
        }
    };
    json!({ "description": "What was asked for", "content": content })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// `OSTLER_BLESS=1` writes it anew: look at the difference.
    #[test]
    fn the_committed_description_is_what_is_served() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        if std::env::var_os("OSTLER_BLESS").is_some() {
            fs::write(&path, document()).unwrap();
        }
        assert!(fs::read_to_string(&path).unwrap() == document(), "docs/openapi.json is another one");
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_says_what_it_takes() {
        let mut seen = BTreeSet::new();
        for endpoint in api::endpoints() {
            assert!(seen.insert(endpoint.id), "{} is there twice", endpoint.id);
            assert_eq!(endpoint.method == "post", endpoint.body.is_some(), "{}", endpoint.id);
        }
    }

    /// Every field that somebody may send is described, and nothing is an object of which nobody says anything.
    #[test]
    fn everything_that_is_asked_and_answered_has_a_schema() {
        let whole: Value = serde_json::from_str(&document()).unwrap();
        for (path, methods) in whole["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                for parameter in operation["parameters"].as_array().unwrap() {
                    assert!(parameter["description"].is_string(), "{method} {path}: {parameter}");
                    assert!(parameter["schema"]["type"].is_string(), "{method} {path}: {parameter}");
                }
                let body = &operation["requestBody"]["content"]["application/json"]["schema"];
                for (name, field) in body["properties"].as_object().into_iter().flatten() {
                    assert!(field["description"].is_string(), "{method} {path}: {name}");
                }
            }
        }
        for (name, schema) in whole["components"]["schemas"].as_object().unwrap() {
            let is_said = ["properties", "anyOf", "oneOf", "enum"]
                .iter()
                .any(|key| schema[*key].is_array() || schema[*key].is_object());
            assert!(is_said, "{name}: {schema}");
        }
    }
}
