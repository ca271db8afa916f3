//! Lists, as they are read page by page.

use serde::{Serialize, Serializer, ser::SerializeMap};

/// `{"sessions": […], "next_cursor": …}`
pub struct Object<F> {
    pub name: &'static str,
    pub rows: Vec<F>,
    /// Where the next page begins (`--cursor`).
    pub next_cursor: Option<u64>,
}

impl<F: Serialize> Serialize for Object<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry(self.name, &self.rows)?;
        map.serialize_entry("next_cursor", &self.next_cursor.map(|cursor| cursor.to_string()))?;
        map.end()
    }
}
