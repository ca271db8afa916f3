//! What people wrote beside their settings outlives them: comments of a setting that is taken out stay in the file.

use toml_edit::{Decor, DocumentMut, Item, RawString, Table, TableLike};

/// The comments that a file begins with, up to a blank line and with it: they are of the file, and of nothing in it. Of a
/// file that says nothing they are all of it.
pub(super) fn heading(text: &str) -> (&str, &str) {
    let mut end = 0;
    let mut is_over = false;
    for line in text.split_inclusive('\n') {
        let is_blank = line.trim().is_empty();
        if !is_blank && (is_over || !line.trim_start().starts_with('#')) {
            return if is_over { text.split_at(end) } else { ("", text) };
        }
        is_over |= is_blank && end > 0;
        end += line.len();
    }
    (text, "")
}

/// Takes it out, and the sections that had nothing but it; says whether it was there.
pub(super) fn remove(document: &mut DocumentMut, sections: &[String], last: &str) -> bool {
    let Some(Removed { left, place }) = take(document.as_item_mut(), sections, last) else { return false };
    if left.is_empty() {
        return true;
    }
    let mut sections = Vec::new();
    for (_, item) in document.iter() {
        headed(item, &mut sections);
    }
    let next = sections.iter().filter_map(|table| table.position()).filter(|at| Some(*at) > place).min();
    match next.and_then(|next| document.iter_mut().find_map(|(_, item)| section_at(item, next))) {
        Some(next) => put_above(next.decor_mut(), &left),
        None => {
            let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing(format!("{left}{trailing}"));
        }
    }
    true
}

struct Removed {
    /// Comments that no section took in.
    left: String,
    /// Behind which section they were.
    place: Option<isize>,
}

fn take(at: &mut Item, sections: &[String], last: &str) -> Option<Removed> {
    // Not the item's own way to what is in it, which makes what is not there.
    let table = at.as_table_like_mut()?;
    let Some((section, below)) = sections.split_first() else { return take_one(at, last) };
    let item = table.get_mut(section)?;
    let mut removed = take(item, below, last)?;
    if let Some(table) = item.as_table_mut().filter(|table| has_heading(table)) {
        if !removed.left.is_empty() && removed.place.is_none() {
            let above = format!("{}{}", prefix(table.decor()), std::mem::take(&mut removed.left));
            table.decor_mut().set_prefix(above);
        }
        if table.is_empty() && !comments(table.decor()).is_empty() {
            return Some(removed);
        }
    }
    if item.as_table_like().is_some_and(TableLike::is_empty) {
        table.remove(section);
    }
    Some(removed)
}

fn take_one(at: &mut Item, last: &str) -> Option<Removed> {
    let table = at.as_table_like_mut()?;
    let before = table.key(last).map(|key| comments(key.leaf_decor())).unwrap_or_default();
    let behind = table.iter().skip_while(|(name, _)| *name != last).skip(1);
    let values = behind.filter(|(_, item)| item.is_value());
    let next = values.map(|(name, _)| name.to_owned()).next();
    let removed = table.remove(last)?;
    if removed.is_value() {
        if let Some(mut next) = next.as_deref().and_then(|next| table.key_mut(next)) {
            put_above(next.leaf_decor_mut(), &before);
            return Some(Removed { left: String::new(), place: None });
        }
        return Some(Removed { left: before, place: None });
    }
    let mut sections = Vec::new();
    headed(&removed, &mut sections);
    let place = sections.iter().filter_map(|table| table.position()).min();
    let left = sections.iter().map(|table| comments(table.decor())).collect();
    Some(Removed { left, place })
}

/// Whether its name stands in the file above what it has.
fn has_heading(table: &Table) -> bool {
    !table.is_implicit() && !table.is_dotted()
}

/// Every section in it that has a heading.
fn headed<'a>(item: &'a Item, found: &mut Vec<&'a Table>) {
    match item {
        Item::Table(table) => {
            found.extend(Some(table).filter(|table| has_heading(table)));
            table.iter().for_each(|(_, below)| headed(below, found));
        }
        Item::ArrayOfTables(tables) => found.extend(tables.iter()),
        Item::None | Item::Value(_) => {}
    }
}

fn section_at(item: &mut Item, place: isize) -> Option<&mut Table> {
    match item {
        Item::Table(table) => match has_heading(table) && table.position() == Some(place) {
            true => Some(table),
            false => table.iter_mut().find_map(|(_, below)| section_at(below, place)),
        },
        Item::ArrayOfTables(tables) => tables.iter_mut().find(|table| table.position() == Some(place)),
        Item::None | Item::Value(_) => None,
    }
}

fn put_above(decor: &mut Decor, left: &str) {
    let above = format!("{left}{}", prefix(decor));
    decor.set_prefix(above);
}

/// What stands in front, if that is more than room.
fn comments(decor: &Decor) -> String {
    Some(prefix(decor)).filter(|before| before.contains('#')).unwrap_or_default().to_owned()
}

fn prefix(decor: &Decor) -> &str {
    decor.prefix().and_then(RawString::as_str).unwrap_or_default()
}
