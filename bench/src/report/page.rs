//! The results' page: measured parts lie between marks and are rewritten, all else is written by people and stays.

use std::{fs, io, path::PathBuf};

use super::{Machine, Section};

pub(crate) struct Page {
    path: PathBuf,
}

impl Page {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Puts a section in the place of the one that was measured before, or at the end.
    pub(crate) fn put(&self, section: &Section, machine: &Machine) -> io::Result<()> {
        self.put_text(section.name, &section.write(), machine)
    }

    /// The same with a text.
    pub(crate) fn put_text(&self, name: &str, text: &str, machine: &Machine) -> io::Result<()> {
        let page = match fs::read_to_string(&self.path) {
            Ok(page) => page,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let measured = format!("{}\n\n{text}", machine.write());
        fs::write(&self.path, replaced(&page, name, &measured))
    }
}

fn replaced(page: &str, name: &str, measured: &str) -> String {
    let (open, close) = (format!("<!-- {name} measured -->\n"), format!("<!-- {name} end -->\n"));
    let part = format!("{open}\n{measured}\n{close}");
    let around = page.split_once(&open).and_then(|(before, rest)| Some((before, rest.split_once(&close)?.1)));
    match around {
        Some((before, after)) => format!("{before}{part}{after}"),
        None if page.is_empty() => format!("## {name}\n\n{part}"),
        None => format!("{}\n\n## {name}\n\n{part}", page.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_measured_part_changes() {
        let page = replaced("# Results\n", "P1", "old");
        let page = replaced(&format!("{page}\nHeld back by the disk.\n"), "P2", "two");
        let page = replaced(&page, "P1", "new");
        assert_eq!(
            page,
            "# Results\n\n## P1\n\n<!-- P1 measured -->\n\nnew\n<!-- P1 end -->\n\nHeld back by the disk.\n\n## P2\n\n<!-- P2 measured -->\n\ntwo\n<!-- P2 end -->\n"
        );
    }
}
