//! Tables: columns as wide as what is in them. Where the screen is narrower, the least wanted columns go first, and
//! the one that may be cut is cut last.

use super::{Line, Look};

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    head: &'static str,
    to_the_right: bool,
    /// Columns with a number go when there is no room, the lowest first.
    goes: Option<u8>,
    /// It is cut to this width before any column goes, and further when nothing else helps.
    gives_way_to: Option<usize>,
    /// Its end is kept where it is cut.
    is_path: bool,
    /// Only in wide tables, or when it is asked for.
    is_extra: bool,
    /// What it may be called too where columns are chosen.
    also: Option<&'static str>,
}

impl Column {
    pub const fn new(head: &'static str) -> Self {
        Self {
            head,
            to_the_right: false,
            goes: None,
            gives_way_to: None,
            is_path: false,
            is_extra: false,
            also: None,
        }
    }

    /// Its content stands at its right edge.
    pub const fn right(self) -> Self {
        Self { to_the_right: true, ..self }
    }

    /// It goes when there is no room, those with lower numbers first.
    pub const fn goes(self, order: u8) -> Self {
        Self { goes: Some(order), ..self }
    }

    /// It is cut when there is no room.
    pub const fn gives_way_to(self, width: usize) -> Self {
        Self { gives_way_to: Some(width), ..self }
    }

    /// It has paths, which are cut in the middle.
    pub const fn path(self) -> Self {
        Self { is_path: true, ..self }
    }

    /// It is shown in wide tables only.
    pub const fn extra(self) -> Self {
        Self { is_extra: true, ..self }
    }

    /// It is found by this name too.
    pub const fn also(self, name: &'static str) -> Self {
        Self { also: Some(name), ..self }
    }

    /// What it is called where columns are chosen.
    fn name(&self) -> String {
        match self.head {
            "" => "sign".to_owned(),
            head => head.to_lowercase().replace(' ', "_"),
        }
    }
}

/// Rows under columns.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Line>>,
    heads: bool,
    /// As wide as it must be, with the extra columns.
    is_wide: bool,
    /// The columns that were asked for, by their place.
    chosen: Option<Vec<usize>>,
}

/// What a column that gives way keeps at the least.
const LEAST: usize = 8;

impl Table {
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new(), heads: true, is_wide: false, chosen: None }
    }

    #[must_use]
    pub fn with_heads(self, heads: bool) -> Self {
        Self { heads, ..self }
    }

    #[must_use]
    pub fn wide(self, is_wide: bool) -> Self {
        Self { is_wide, ..self }
    }

    /// What the columns are called where they are chosen.
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().map(Column::name).collect()
    }

    /// Only these columns, in this order. Else the name that is wrong, and those there are.
    pub fn only(self, names: &[String]) -> Result<Self, (String, Vec<String>)> {
        let known = self.names();
        let place = |name: &String| {
            let wanted = name.trim().to_lowercase().replace([' ', '-'], "_");
            let other = |column: &Column| column.also == Some(wanted.as_str());
            let place = known.iter().position(|known| *known == wanted);
            place.or_else(|| self.columns.iter().position(other)).ok_or_else(|| name.clone())
        };
        match names.iter().map(place).collect::<Result<Vec<_>, _>>() {
            Ok(chosen) => Ok(Self { chosen: Some(chosen), ..self }),
            Err(wrong) => Err((wrong, known)),
        }
    }

    /// Adds a row: one cell for each column.
    pub fn row(&mut self, cells: Vec<Line>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The table as lines for this look.
    pub fn lines(&self, look: &Look) -> Vec<Line> {
        let mut widths: Vec<usize> = (0..self.columns.len()).map(|n| self.natural_width(n)).collect();
        let mut shown = match &self.chosen {
            Some(chosen) => chosen.clone(),
            None => (0..self.columns.len())
                .filter(|n| widths[*n] > 0 && (self.is_wide || !self.columns[*n].is_extra))
                .collect(),
        };
        if let Some(most) = look.width.filter(|_| !self.is_wide) {
            self.fit(most, &mut widths, &mut shown);
        }
        let heads =
            self.heads.then(|| self.columns.iter().map(|column| Line::new().faint(column.head)).collect());
        heads.iter().chain(&self.rows).map(|cells| self.lay_out(cells, &widths, &shown)).collect()
    }

    fn natural_width(&self, n: usize) -> usize {
        let head = if self.heads { Line::of(self.columns[n].head).width() } else { 0 };
        self.rows.iter().map(|cells| cells[n].width()).max().unwrap_or(0).max(head)
    }

    fn fit(&self, most: usize, widths: &mut [usize], shown: &mut Vec<usize>) {
        let total = |widths: &[usize], shown: &[usize]| -> usize {
            shown.iter().map(|n| widths[*n]).sum::<usize>() + shown.len().saturating_sub(1)
        };
        let soft = shown.iter().copied().find(|n| self.columns[*n].gives_way_to.is_some());
        let natural = soft.map(|n| widths[n]);
        if let Some(n) = soft
            && let Some(cap) = self.columns[n].gives_way_to
        {
            widths[n] = widths[n].min(cap);
        }
        // What was asked for by name stays.
        let may_leave = if self.chosen.is_some() { &[][..] } else { &shown[..] };
        let mut leaving: Vec<(u8, usize)> =
            may_leave.iter().filter_map(|n| self.columns[*n].goes.map(|order| (order, *n))).collect();
        leaving.sort_unstable();
        for (_, n) in leaving {
            if total(widths, shown) <= most {
                break;
            }
            shown.retain(|kept| *kept != n);
        }
        if let (Some(n), Some(natural)) = (soft, natural) {
            let others = total(widths, shown) - widths[n];
            // What is left belongs to it: less than it wants, or as much as it can use.
            widths[n] = natural.min(most.saturating_sub(others)).max(LEAST.min(natural));
        }
    }

    fn lay_out(&self, cells: &[Line], widths: &[usize], shown: &[usize]) -> Line {
        let mut line = Line::new();
        for (place, n) in shown.iter().enumerate() {
            let width = widths[*n];
            let cell = cells[*n].clone();
            let cell = if self.columns[*n].is_path { cell.cut_middle(width) } else { cell.cut(width) };
            let space = " ".repeat(width - cell.width());
            let gap = if place == 0 { "" } else { " " };
            line = if self.columns[*n].to_the_right {
                line.plain(gap).plain(space).append(cell)
            } else {
                line.plain(gap).append(cell).plain(space)
            };
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::new("ID"),
            Column::new("PLACE").goes(1),
            Column::new("NOW").gives_way_to(20),
            Column::new("AGE").right().goes(2),
        ]);
        table.row(["k7q4x", "shop", "run: cargo test -p store", "41m"].map(Line::of).into());
        table.row(["9m2fd", "日本", "idle", "9s"].map(Line::of).into());
        table
    }

    fn shown(width: Option<usize>) -> String {
        let look = Look::plain(width);
        table().lines(&look).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn columns_go_before_the_soft_one_is_cut() {
        insta::assert_snapshot!(shown(None), @r"
        ID    PLACE NOW                      AGE
        k7q4x shop  run: cargo test -p store 41m
        9m2fd 日本  idle                      9s
        ");
        insta::assert_snapshot!(shown(Some(36)), @r"
        ID    PLACE NOW                  AGE
        k7q4x shop  run: cargo test -p … 41m
        9m2fd 日本  idle                  9s
        ");
        insta::assert_snapshot!(shown(Some(30)), @r"
        ID    NOW                  AGE
        k7q4x run: cargo test -p … 41m
        9m2fd idle                  9s
        ");
        insta::assert_snapshot!(shown(Some(18)), @r"
        ID    NOW
        k7q4x run: cargo …
        9m2fd idle
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        for width in 15..80 {
            let look = Look::plain(Some(width));
            for line in table().lines(&look) {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn a_path_is_cut_in_its_middle() {
        let mut table = Table::new([Column::new("NAME"), Column::new("PROGRAM").gives_way_to(12).path()]);
        let program = "~/.local/share/fnm/node-versions/v22.11.0/installation/bin/claude";
        table.row(["claude-code", program].map(Line::of).into());
        for width in 20..80 {
            let look = Look::plain(Some(width));
            for line in table.lines(&look) {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
        let look = Look::plain(Some(40));
        let shown = table.lines(&look).pop().unwrap().show(&look);
        assert_eq!(shown, "claude-code ~/.local/…llation/bin/claude");
    }

    #[test]
    fn columns_can_be_chosen_by_their_names() {
        let look = Look::plain(Some(20));
        let only = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            table().only(&names).map(|table| {
                table.lines(&look).iter().map(|line| line.show(&look)).collect::<Vec<_>>().join("\n")
            })
        };
        insta::assert_snapshot!(only(&["age", "PLACE", "now"]).unwrap(), @r"
        AGE PLACE NOW
        41m shop  run: carg…
         9s 日本  idle
        ");
        let (wrong, known) = only(&["id", "price"]).unwrap_err();
        assert_eq!((wrong.as_str(), known.join(" ").as_str()), ("price", "id place now age"));
    }

    #[test]
    fn extra_columns_are_for_wide_tables_and_who_asks() {
        let table = || {
            let mut table = Table::new([Column::new("A"), Column::new("CACHE READ").extra()]);
            table.row(vec![Line::of("x"), Line::of("y")]);
            table
        };
        let look = Look::plain(Some(4));
        let shown = |table: Table| table.lines(&look).last().map(|line| line.show(&look)).unwrap();
        assert_eq!(shown(table()), "x");
        assert_eq!(shown(table().wide(true)), "x y");
        assert_eq!(shown(table().only(&["cache_read".to_owned()]).unwrap()), "y");
    }

    #[test]
    fn columns_without_content_are_left_out_with_their_heads() {
        let mut table = Table::new([Column::new("A"), Column::new("B")]).with_heads(false);
        table.row(vec![Line::of("x"), Line::new()]);
        assert_eq!(table.lines(&Look::plain(None)), [Line::of("x")]);
    }
}
