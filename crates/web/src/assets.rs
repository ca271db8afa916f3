//! The files of the dashboard, in the program itself.

use axum::{
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::pages::escaped;

/// Name, type and content. Nobody reads a file for a request.
const FILES: &[(&str, &str, &[u8])] = &[
    ("ostler.css", "text/css; charset=utf-8", include_bytes!("../assets/ostler.css")),
    ("ostler.js", "text/javascript; charset=utf-8", include_bytes!("../assets/ostler.js")),
    ("card.js", "text/javascript; charset=utf-8", include_bytes!("../assets/card.js")),
    ("ostler.svg", "image/svg+xml", include_bytes!("../assets/ostler.svg")),
];

pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, bytes)) => {
            ([(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, "max-age=3600")], *bytes).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// What a browser sees that was not let in.
pub(crate) fn shut() -> Response {
    page(StatusCode::UNAUTHORIZED, "This browser was not let in.")
}

/// What a browser sees that may come in, but not there.
pub(crate) fn refused(why: &str) -> Response {
    page(StatusCode::FORBIDDEN, &format!("Not from here: {}.", escaped(why)))
}

/// What a browser sees whose link was used, or waited too long.
pub(crate) fn stale_link() -> Response {
    page(StatusCode::FORBIDDEN, "This link was used already, or waited for too long.")
}

/// What somebody sees who asks for an approval that there is none of.
pub(crate) fn no_card() -> Response {
    page(StatusCode::NOT_FOUND, "There is no such approval.")
}

/// What a browser sees that was just let in: the way on, which it takes by itself.
pub(crate) fn come_in(path: &str) -> Response {
    let html = include_str!("../templates/come_in.html").replace("{path}", &escaped(path));
    (StatusCode::OK, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

fn page(status: StatusCode, sentence: &str) -> Response {
    let html = include_str!("../templates/shut.html").replace("{sentence}", sentence);
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}
