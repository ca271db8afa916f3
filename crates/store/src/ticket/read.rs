//! Questions about tickets. Each is one query over an index, whatever the number of tickets.

use std::collections::BTreeMap;

use ostler_domain::{
    AgentId, CampaignId, ConversationId, Event, SessionId, TicketId, Usage,
    ask::OutputAdded,
    conversation::TurnRef,
    event::By,
    id::Fragment,
    price::Dollars,
    query::{Listed, Page, TicketFilter},
    session::Outcome,
    ticket::{About, Blocker, Checkpoint, Dated, Iteration, Links, Output, Status, Step, Ticket, Whole},
};
use rusqlite::{Connection, Params, Row, ToSql, params, params_from_iter};

use crate::{
    convert::{parsed, parsed_if_any, signed, time, time_if_any, unsigned},
    error::ReadError,
    log::{STORED, Stored},
    session::fragment_condition,
    store::{Reader, Store},
};

/// What a ticket's conversation says of who works on it: the last tickets of a campaign with their agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentTicket {
    pub ticket: TicketId,
    pub status: Status,
    pub agent: Option<AgentId>,
    /// The provider's own name for the dialogue, as its last session knew it.
    pub provider_id: Option<String>,
}

impl Store {
    pub async fn ticket(&self, id: TicketId) -> Result<Option<Ticket>, ReadError> {
        self.read(move |reader| Ok(query(&reader.connection, "id = ?1", [id.to_string()])?.pop())).await
    }

    /// The open tickets that depend on this one.
    pub async fn tickets_waiting_for(&self, id: TicketId) -> Result<Vec<Ticket>, ReadError> {
        let waiting = "id IN (SELECT ticket FROM ticket_dependency WHERE depends_on = ?1) ORDER BY seq";
        let found = self.read(move |reader| query(&reader.connection, waiting, [id.to_string()])).await?;
        Ok(found.into_iter().filter(|ticket| ticket.status.is_open()).collect())
    }

    /// The tickets with this external reference, each of another campaign.
    pub async fn tickets_elsewhere(&self, external: &str) -> Result<Vec<Ticket>, ReadError> {
        let external = external.to_owned();
        self.read(move |reader| query(&reader.connection, "external = ?1 ORDER BY seq", [external])).await
    }

    /// The ticket of a campaign with this external reference.
    pub async fn ticket_elsewhere(
        &self,
        campaign: CampaignId,
        external: &str,
    ) -> Result<Option<Ticket>, ReadError> {
        let params = [campaign.to_string(), external.to_owned()];
        self.read(move |reader| {
            Ok(query(&reader.connection, "campaign = ?1 AND external = ?2", params)?.pop())
        })
        .await
    }

    /// The tickets that a part of an id fits; a few, if many do.
    pub async fn find_tickets(&self, fragment: &Fragment) -> Result<Vec<Ticket>, ReadError> {
        let fragment = fragment.clone();
        self.read(move |reader| {
            let (condition, params) = fragment_condition(&fragment, TicketId::PREFIX, "ticket", "seq");
            let condition = format!("{condition} ORDER BY seq DESC");
            query(&reader.connection, &condition, params_from_iter(params))
        })
        .await
    }

    /// The tickets that a filter fits, newest first.
    pub async fn tickets(&self, filter: &TicketFilter, page: Page) -> Result<Listed<Ticket>, ReadError> {
        let filter = filter.clone();
        self.read(move |reader| list(&reader.connection, &filter, page)).await
    }

    /// The tickets worked on in a conversation, newest first.
    pub async fn tickets_of_conversation(
        &self,
        id: ConversationId,
        page: Page,
    ) -> Result<Listed<Ticket>, ReadError> {
        let filter = TicketFilter { conversation: Some(id), archived_too: true, ..TicketFilter::default() };
        self.tickets(&filter, page).await
    }

    /// The last tickets of a campaign, with the agents in whose conversations they are and what those are to the provider.
    pub async fn recent_tickets(
        &self,
        campaign: CampaignId,
        limit: u32,
    ) -> Result<Vec<RecentTicket>, ReadError> {
        self.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(RECENT)?;
            statement
                .query_and_then(params![campaign.to_string(), limit], |row| {
                    let agent: Option<String> = row.get("agent")?;
                    Ok(RecentTicket {
                        ticket: parsed(row, "id", "ticket id")?,
                        status: status(row)?,
                        agent: match agent.filter(|agent| !agent.is_empty()) {
                            Some(_) => Some(parsed(row, "agent", "agent id")?),
                            None => None,
                        },
                        provider_id: row.get("provider_id")?,
                    })
                })?
                .collect()
        })
        .await
    }

    /// How the tickets stand that one depends on.
    pub async fn blockers(&self, id: TicketId) -> Result<Vec<Blocker>, ReadError> {
        self.read(move |reader| blockers(&reader.connection, id)).await
    }

    /// What the tickets depend on that can be reached from these.
    pub async fn dependencies_below(
        &self,
        from: &[TicketId],
    ) -> Result<BTreeMap<TicketId, Vec<TicketId>>, ReadError> {
        let from: Vec<String> = from.iter().map(ToString::to_string).collect();
        self.read(move |reader| {
            let mut edges: BTreeMap<TicketId, Vec<TicketId>> = BTreeMap::new();
            if from.is_empty() {
                return Ok(edges);
            }
            let sql = format!(
                "WITH RECURSIVE below(id) AS (
                     VALUES {} UNION SELECT d.depends_on FROM ticket_dependency d JOIN below ON d.ticket = below.id)
                 SELECT d.ticket, d.depends_on FROM ticket_dependency d JOIN below ON d.ticket = below.id",
                vec!["(?)"; from.len()].join(",")
            );
            let mut statement = reader.connection.prepare(&sql)?;
            let mut rows = statement.query(params_from_iter(from))?;
            while let Some(row) = rows.next()? {
                let on = parsed(row, "depends_on", "ticket id")?;
                edges.entry(parsed(row, "ticket", "ticket id")?).or_default().push(on);
            }
            Ok(edges)
        })
        .await
    }

    /// A ticket with all that belongs to it.
    pub async fn whole_ticket(&self, id: TicketId) -> Result<Option<Whole>, ReadError> {
        self.read(move |reader| {
            let connection = &reader.connection;
            let Some(ticket) = query(connection, "id = ?1", [id.to_string()])?.pop() else { return Ok(None) };
            Ok(Some(Whole {
                depends_on: blockers(connection, id)?,
                outputs: outputs(reader, id)?,
                checkpoints: checkpoints(connection, id)?,
                steps: steps(connection, id)?,
                iterations: iterations(connection, id)?,
                ticket,
            }))
        })
        .await
    }
}

const RECENT: &str = "SELECT t.id, t.status, c.agent,
        (SELECT s.provider_id FROM session s WHERE s.conversation = t.conversation ORDER BY s.num DESC LIMIT 1) AS provider_id
     FROM ticket t LEFT JOIN conversation c ON c.id = t.conversation
     WHERE t.campaign = ?1 ORDER BY t.seq DESC LIMIT ?2";

fn list_sql(filter: &TicketFilter, page: Page) -> (String, Vec<Box<dyn ToSql>>) {
    let mut condition = "seq < ?".to_owned();
    let mut params: Vec<Box<dyn ToSql>> = vec![Box::new(page.cursor.map_or(i64::MAX, signed))];
    let equals = [
        ("campaign", filter.campaign.map(|id| id.to_string())),
        ("conversation", filter.conversation.map(|id| id.to_string())),
        ("type", filter.kind.clone()),
        ("external", filter.external.clone()),
    ];
    for (column, value) in equals {
        if let Some(value) = value {
            condition.push_str(&format!(" AND {column} = ?"));
            params.push(Box::new(value));
        }
    }
    if !filter.statuses.is_empty() {
        condition.push_str(&format!(" AND status IN ({})", vec!["?"; filter.statuses.len()].join(",")));
        params.extend(filter.statuses.iter().map(|status| Box::new(status.as_str()) as Box<dyn ToSql>));
    } else if !filter.archived_too {
        condition.push_str(" AND status <> 'archived'");
    }
    for (comparison, time) in [("added >= ?", filter.since), ("added < ?", filter.until)] {
        if let Some(time) = time {
            condition.push_str(&format!(" AND {comparison}"));
            params.push(Box::new(time.micros()));
        }
    }
    if let Some(agent) = &filter.agent {
        condition.push_str(
            " AND (EXISTS (SELECT 1 FROM session s WHERE s.ticket = ticket.id AND s.agent = ?)
                   OR conversation IN (SELECT c.id FROM conversation c JOIN agent a ON a.id = c.agent WHERE a.name = ?))",
        );
        params.extend([agent, agent].map(|name| Box::new(name.clone()) as Box<dyn ToSql>));
    }
    params.push(Box::new(signed(u64::from(page.limit.max(1)) + 1)));
    (format!("SELECT seq, {COLUMNS} FROM ticket WHERE {condition} ORDER BY seq DESC LIMIT ?"), params)
}

fn list(connection: &Connection, filter: &TicketFilter, page: Page) -> Result<Listed<Ticket>, ReadError> {
    let limit = page.limit.max(1) as usize;
    let (sql, params) = list_sql(filter, page);
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_and_then(params_from_iter(params.iter()), |row| {
        Ok::<_, ReadError>((unsigned(row.get("seq")?), read(row)?))
    })?;
    let mut found = found.collect::<Result<Vec<_>, _>>()?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = found.last().map(|(seq, _)| *seq).filter(|_| has_more);
    let mut rows: Vec<Ticket> = found.into_iter().map(|(_, row)| row).collect();
    rows.iter_mut().try_for_each(|row| fill(connection, row))?;
    Ok(Listed { rows, next_cursor })
}

const COLUMNS: &str =
    "id, campaign, intent, type, status, external, conversation, added, added_by, moved, why";

fn query(connection: &Connection, condition: &str, params: impl Params) -> Result<Vec<Ticket>, ReadError> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM ticket WHERE {condition}"))?;
    let mut rows: Vec<Ticket> = statement.query_and_then(params, read)?.collect::<Result<_, _>>()?;
    rows.iter_mut().try_for_each(|row| fill(connection, row))?;
    Ok(rows)
}

fn fill(connection: &Connection, ticket: &mut Ticket) -> Result<(), ReadError> {
    let sql = "SELECT depends_on FROM ticket_dependency WHERE ticket = ?1 ORDER BY depends_on";
    let mut statement = connection.prepare_cached(sql)?;
    let on =
        statement.query_and_then([ticket.id.to_string()], |row| parsed(row, "depends_on", "ticket id"))?;
    ticket.links.depends_on = on.collect::<Result<_, ReadError>>()?;
    Ok(())
}

fn status(row: &Row<'_>) -> Result<Status, ReadError> {
    let text: String = row.get("status")?;
    Status::parse(&text).ok_or(ReadError::Row { what: "ticket status", text })
}

fn read(row: &Row<'_>) -> Result<Ticket, ReadError> {
    Ok(Ticket {
        id: parsed(row, "id", "ticket id")?,
        campaign: parsed(row, "campaign", "campaign id")?,
        about: About { intent: row.get("intent")?, kind: row.get("type")? },
        links: Links {
            external: parsed_if_any(row, "external", "external reference")?,
            conversation: parsed_if_any(row, "conversation", "conversation id")?,
            depends_on: Vec::new(),
        },
        status: status(row)?,
        added: time(row, "added")?,
        by: By(row.get("added_by")?),
        moved: time(row, "moved")?,
        why: row.get("why")?,
    })
}

fn blockers(connection: &Connection, id: TicketId) -> Result<Vec<Blocker>, ReadError> {
    let sql = "SELECT t.id, t.status, t.external, t.intent, t.type FROM ticket_dependency d
               JOIN ticket t ON t.id = d.depends_on WHERE d.ticket = ?1 ORDER BY t.seq";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_and_then([id.to_string()], |row| {
        let about = About { intent: row.get("intent")?, kind: row.get("type")? };
        Ok(Blocker {
            id: parsed(row, "id", "ticket id")?,
            status: status(row)?,
            external: parsed_if_any(row, "external", "external reference")?,
            title: about.title().to_owned(),
        })
    })?;
    found.collect()
}

fn outputs(reader: &Reader, id: TicketId) -> Result<Vec<Dated<Output>>, ReadError> {
    let sql = format!(
        "SELECT {STORED}, o.session FROM ticket_output o JOIN log_event e ON e.seq = o.seq WHERE o.ticket = ?1 ORDER BY o.seq"
    );
    let mut statement = reader.connection.prepare_cached(&sql)?;
    let mut rows = statement.query([id.to_string()])?;
    let mut outputs = Vec::new();
    while let Some(row) = rows.next()? {
        let stored = Stored::read(row)?;
        let time = stored.time;
        match stored.event(&reader.blobs)? {
            Event::TicketOutputAdded(added) => {
                outputs.push(Dated { what: added.output, time, by: added.by, session: added.session });
            }
            Event::OutputAdded(OutputAdded { name, kind, value }) => {
                let session: SessionId = parsed(row, "session", "session id")?;
                let (what, by) = (Output { name, kind, value }, By::session(session));
                outputs.push(Dated { what, time, by, session: Some(session) });
            }
            _ => {}
        }
    }
    Ok(outputs)
}

fn checkpoints(connection: &Connection, id: TicketId) -> Result<Vec<Dated<Checkpoint>>, ReadError> {
    let sql = "SELECT name, session, turn, snapshot, made, made_by FROM ticket_checkpoint WHERE ticket = ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_and_then([id.to_string()], |row| {
        let session = parsed_if_any(row, "session", "session id")?;
        let turn: Option<u32> = row.get("turn")?;
        let at = session.zip(turn).map(|(session, turn)| TurnRef { session, turn });
        let what = Checkpoint { name: row.get("name")?, at, snapshot: row.get("snapshot")? };
        Ok(Dated { what, time: time(row, "made")?, by: By(row.get("made_by")?), session })
    })?;
    found.collect()
}

fn steps(connection: &Connection, id: TicketId) -> Result<Vec<Step>, ReadError> {
    let sql = "SELECT p.name, s.id AS session, p.started, p.ended, p.success, p.note FROM ticket_step p
               LEFT JOIN session s ON s.num = p.session WHERE p.ticket = ?1 ORDER BY p.seq";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_and_then([id.to_string()], |row| {
        Ok(Step {
            name: row.get("name")?,
            session: parsed_if_any(row, "session", "session id")?,
            started: time_if_any(row, "started")?,
            ended: time_if_any(row, "ended")?,
            success: row.get("success")?,
            note: row.get("note")?,
        })
    })?;
    found.collect()
}

/// The sessions of a ticket, oldest first, each with what its own calls took.
fn iterations(connection: &Connection, id: TicketId) -> Result<Vec<Iteration>, ReadError> {
    let sql = "SELECT s.id, s.name, s.provider, s.created, s.ended, s.outcome, count(u.seq) AS calls,
                      total(u.input) AS input, total(u.cache_read) AS cache_read, total(u.cache_write) AS cache_write,
                      total(u.output) AS output, total(u.reasoning) AS reasoning,
                      total(CASE WHEN u.plan = 0 THEN u.cost END) AS cost,
                      count(CASE WHEN u.plan = 0 AND u.cost IS NULL THEN 1 END) AS unpriced
               FROM session s LEFT JOIN usage u ON u.session = s.num WHERE s.ticket = ?1 GROUP BY s.num ORDER BY s.num";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_and_then([id.to_string()], |row| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, as wanted"
        )]
        let total = |column: &str| row.get::<_, f64>(column).map(|sum| sum as u64);
        let outcome: Option<String> = row.get("outcome")?;
        Ok(Iteration {
            session: parsed(row, "id", "session id")?,
            name: row.get("name")?,
            provider: row.get("provider")?,
            started: time(row, "created")?,
            ended: time_if_any(row, "ended")?,
            result: outcome.as_deref().and_then(Outcome::parse),
            usage: Usage {
                input: total("input")?,
                cache_read: total("cache_read")?,
                cache_write: total("cache_write")?,
                output: total("output")?,
                reasoning: total("reasoning")?,
            },
            cost: if row.get::<_, i64>("unpriced")? == 0 { Some(Dollars(total("cost")?)) } else { None },
            calls: unsigned(row.get("calls")?),
        })
    })?;
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(connection: &Connection, sql: &str) -> String {
        let count = connection.prepare(sql).unwrap().parameter_count();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nothing = vec![rusqlite::types::Null; count];
        let lines =
            statement.query_map(params_from_iter(nothing), |row| row.get::<_, String>("detail")).unwrap();
        lines.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    /// The conversation of an agent, the tickets of a conversation, and the last tickets of a campaign with their agents.
    #[test]
    fn the_questions_about_work_are_answered_from_indexes() {
        let mut connection = Connection::open_in_memory().unwrap();
        let connection = connection.transaction().unwrap();
        crate::schema::create_derived(&connection).unwrap();
        let of_agent = "SELECT id FROM conversation WHERE campaign = ?1 AND agent = ?2 AND folded = ?3 AND closed IS NULL";
        let id = ConversationId::new(ostler_domain::Time::from_micros(1), 1);
        let of_conversation =
            TicketFilter { conversation: Some(id), archived_too: true, ..TicketFilter::default() };
        let (of_conversation, _) = list_sql(&of_conversation, Page::of(20, None));
        let asked = [
            (of_agent, "conversation_open"),
            (of_conversation.as_str(), "ticket_conversation"),
            (RECENT, "ticket_campaign"),
        ];
        for (sql, index) in asked {
            let plan = plan(&connection, sql);
            assert!(plan.contains(&format!("INDEX {index}")), "{plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
