//! Another tracker's work, brought in again and again.

use std::collections::BTreeMap;

use ostler_domain::{
    Event, Reason, Refusal, TicketId,
    campaign::Campaign,
    event::{By, TicketAdded, TicketChanged, TicketLinked, TicketMoved},
    ticket::{ExternalRef, ImportChange, Imported, Links, Ticket, Work, cycle},
};

use crate::{Change, Engine, clock::entropy};

/// What an import would do to one ticket.
struct Bringing<'a> {
    work: &'a Work,
    id: TicketId,
    there: Option<Ticket>,
    depends_on: Vec<TicketId>,
}

impl Engine {
    /// Writes down what another tracker has: what is there already is brought up to it, and nothing is done twice. Either
    /// all of it comes, or nothing.
    pub async fn import_tickets(
        &self,
        campaign: &str,
        work: &[Work],
        dry_run: bool,
        change: Change,
    ) -> Result<Vec<Imported>, Refusal> {
        let campaign = self.campaign(campaign).await?;
        let _naming = self.shared.naming.lock().await;
        let bringing = self.bringing(&campaign, work).await?;
        self.check_cycles(&bringing).await?;
        let mut events = Vec::new();
        let mut imported = Vec::with_capacity(work.len());
        for one in &bringing {
            let before = events.len();
            one.events(&campaign, &change.by, &mut events);
            let outcome = match &one.there {
                None => ImportChange::Added,
                Some(_) if events.len() > before => ImportChange::Changed,
                Some(_) => ImportChange::Same,
            };
            imported.push(Imported {
                external: one.work.external.clone(),
                id: Some(one.id).filter(|_| !dry_run || one.there.is_some()),
                change: outcome,
            });
        }
        if !dry_run && !events.is_empty() {
            self.record_nodes(events, None).await?;
        }
        Ok(imported)
    }

    async fn bringing<'a>(
        &self,
        campaign: &Campaign,
        work: &'a [Work],
    ) -> Result<Vec<Bringing<'a>>, Refusal> {
        let mut ids: BTreeMap<ExternalRef, TicketId> = BTreeMap::new();
        let mut bringing = Vec::with_capacity(work.len());
        for one in work {
            let there = self.shared.store.ticket_elsewhere(campaign.id, one.external.as_str()).await?;
            let id = match &there {
                Some(there) => there.id,
                None => TicketId::new(self.shared.clock.now().wall, entropy()),
            };
            ids.insert(one.external.clone(), id);
            bringing.push(Bringing { work: one, id, there, depends_on: Vec::new() });
        }
        for one in &mut bringing {
            one.depends_on =
                one.there.as_ref().map(|there| there.links.depends_on.clone()).unwrap_or_default();
            for external in &one.work.depends_on {
                let on = match ids.get(external) {
                    Some(id) => Some(*id),
                    // Of another import; what nobody ever brought cannot be waited for.
                    None => {
                        let there =
                            self.shared.store.ticket_elsewhere(campaign.id, external.as_str()).await?;
                        there.map(|there| there.id)
                    }
                };
                one.depends_on.extend(on.filter(|on| !one.depends_on.contains(on)));
            }
            one.depends_on.sort_unstable();
        }
        Ok(bringing)
    }

    async fn check_cycles(&self, bringing: &[Bringing<'_>]) -> Result<(), Refusal> {
        let reached: Vec<TicketId> = bringing.iter().flat_map(|one| one.depends_on.clone()).collect();
        let mut edges = BTreeMap::new();
        // A question has room for so many.
        for some in reached.chunks(500) {
            edges.extend(self.shared.store.dependencies_below(some).await?);
        }
        for one in bringing {
            edges.insert(one.id, one.depends_on.clone());
        }
        for one in bringing {
            for on in &one.depends_on {
                if let Some(way) = cycle(&edges, one.id, *on) {
                    let name = |id: &TicketId| {
                        let found = bringing.iter().find(|one| one.id == *id);
                        found.map_or_else(|| id.short(), |found| found.work.external.to_string())
                    };
                    let shown: Vec<_> = [&one.id].into_iter().chain(&way).map(name).collect();
                    return Err(Refusal::new(
                        Reason::TicketCycle,
                        "tickets would wait for each other for ever, so nothing was imported",
                    )
                    .because(shown.join(" waits for ")));
                }
            }
        }
        Ok(())
    }
}

impl Bringing<'_> {
    fn events(&self, campaign: &Campaign, by: &By, events: &mut Vec<Event>) {
        let (id, work) = (self.id, self.work);
        let Some(there) = &self.there else {
            let links = Links {
                external: Some(work.external.clone()),
                depends_on: self.depends_on.clone(),
                ..Links::default()
            };
            let (about, status) = (work.about.clone(), work.status);
            let added = TicketAdded { id, campaign: campaign.id, about, links, status, by: by.clone() };
            events.push(Event::TicketAdded(Box::new(added)));
            return;
        };
        if let Some(about) = work.about_for(there) {
            let changed = TicketChanged { id, about: about.clone(), by: by.clone() };
            events.push(Event::TicketChanged(changed));
        }
        if self.depends_on != there.links.depends_on {
            let links = Links { depends_on: self.depends_on.clone(), ..there.links.clone() };
            events.push(Event::TicketLinked(TicketLinked { id, links, by: by.clone() }));
        }
        if let Some(to) = work.status_for(there) {
            let why = "so says the tracker that it was imported from".to_owned();
            let (from, by) = (there.status, by.clone());
            events.push(Event::TicketMoved(TicketMoved { id, from, to, by, why, session: None }));
        }
    }
}
