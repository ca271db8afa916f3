//! One graph for every strategy: an assignment for each instance, and what each needs.
//!
//! Parallel has no edges, sequential is a chain, a pipeline's stages are barriers, adaptive has what was declared. An
//! assignment comes after what it needs, so that one pass over them in their order sees everything in time.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use super::{
    Assignment,
    plan::{Member, Plan},
    words::Strategy,
};
use crate::AssignmentId;

/// Who needs whom, by place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    needs: Vec<Vec<u32>>,
    feeds: Vec<Vec<u32>>,
    /// Places of those that were removed: nobody needs them.
    removed: BTreeSet<u32>,
    /// Assignments on the longest way from each to an end.
    heights: Vec<u64>,
}

impl Graph {
    /// The graph of assignments each of which comes after what it needs; needs that do not are left out.
    pub fn of<'a>(assignments: impl IntoIterator<Item = &'a Assignment>) -> Graph {
        let mut graph = Graph::default();
        assignments.into_iter().for_each(|assignment| graph.add(assignment));
        graph.measure();
        graph
    }

    pub(super) fn add(&mut self, assignment: &Assignment) {
        let place = self.needs.len();
        let earlier = assignment.needs.iter().copied().filter(|need| (*need as usize) < place);
        self.needs.push(Vec::new());
        self.feeds.push(Vec::new());
        let needs = self.wanted(earlier);
        self.connect(place, needs);
    }

    /// Whoever needs what is removed needs in its place what that needed: it begins no earlier than it would have.
    pub(super) fn remove(&mut self, place: usize) {
        self.removed.insert(place as u32);
        for next in std::mem::take(&mut self.feeds[place]) {
            let needs = self.wanted(self.needs[next as usize].iter().copied());
            self.connect(next as usize, needs);
        }
    }

    /// These, with what those that were removed needed in their place.
    fn wanted(&self, needs: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut wanted = Vec::new();
        for need in needs {
            if self.removed.contains(&need) {
                wanted.extend_from_slice(self.needs(need as usize));
            } else {
                wanted.push(need);
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    fn connect(&mut self, place: usize, needs: Vec<u32>) {
        for need in &needs {
            let feeds = &mut self.feeds[*need as usize];
            if let Err(at) = feeds.binary_search(&(place as u32)) {
                feeds.insert(at, place as u32);
            }
        }
        self.needs[place] = needs;
    }

    /// After some were added or removed.
    pub(super) fn measure(&mut self) {
        self.heights = self.heights(|_| 1);
    }

    /// How many assignments come after this one, on the longest way, itself included.
    pub(super) fn height(&self, place: usize) -> u64 {
        self.heights.get(place).copied().unwrap_or_default()
    }

    /// The graph with one more that needs all at its ends.
    pub(super) fn with_end(&self) -> Graph {
        let ends: Vec<u32> =
            (0..self.len()).filter(|place| self.feeds(*place).is_empty()).map(|place| place as u32).collect();
        let mut graph = self.clone();
        ends.iter().for_each(|end| graph.feeds[*end as usize].push(self.len() as u32));
        graph.needs.push(ends);
        graph.feeds.push(Vec::new());
        graph.measure();
        graph
    }

    pub fn len(&self) -> usize {
        self.needs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// What an assignment needs.
    pub fn needs(&self, place: usize) -> &[u32] {
        self.needs.get(place).map_or(&[], Vec::as_slice)
    }

    /// What needs an assignment.
    pub fn feeds(&self, place: usize) -> &[u32] {
        self.feeds.get(place).map_or(&[], Vec::as_slice)
    }

    /// The assignments by the longest way that leads to them: all of a wave could run at once.
    pub fn waves(&self) -> Vec<Vec<usize>> {
        let mut waves: Vec<Vec<usize>> = Vec::new();
        let mut level = vec![0usize; self.len()];
        for place in 0..self.len() {
            let above = self.needs(place).iter().map(|need| level[*need as usize] + 1);
            level[place] = above.max().unwrap_or(0);
            if waves.len() <= level[place] {
                waves.resize(level[place] + 1, Vec::new());
            }
            waves[level[place]].push(place);
        }
        waves
    }

    /// How much weight lies on the heaviest way from each assignment to an end, its own included.
    pub fn heights(&self, weight: impl Fn(usize) -> u64) -> Vec<u64> {
        let mut heights = vec![0u64; self.len()];
        for place in (0..self.len()).rev() {
            let below = self.feeds(place).iter().map(|next| heights[*next as usize]).max().unwrap_or(0);
            heights[place] = weight(place).saturating_add(below);
        }
        heights
    }

    /// The heaviest way through the graph: nothing makes the mission shorter than it.
    pub fn critical_path(&self, weight: impl Fn(usize) -> u64) -> Vec<usize> {
        let heights = self.heights(weight);
        // Of equal ways it is the first.
        let heaviest = |places: &mut dyn Iterator<Item = usize>| {
            places.max_by_key(|place| (heights[*place], Reverse(*place)))
        };
        let mut roots = (0..self.len()).filter(|place| self.needs(*place).is_empty());
        let mut path = Vec::new();
        let mut next = heaviest(&mut roots);
        while let Some(place) = next {
            path.push(place);
            next = heaviest(&mut self.feeds(place).iter().map(|place| *place as usize));
        }
        path
    }

    /// All that can be reached from these by `next`, these not included unless they are reached.
    pub(super) fn reached<'a>(
        &'a self,
        from: impl IntoIterator<Item = usize>,
        next: impl Fn(&'a Self, usize) -> &'a [u32],
    ) -> Vec<bool> {
        let mut seen = vec![false; self.len()];
        let mut left: Vec<usize> = from.into_iter().collect();
        while let Some(place) = left.pop() {
            for other in next(self, place) {
                if !std::mem::replace(&mut seen[*other as usize], true) {
                    left.push(*other as usize);
                }
            }
        }
        seen
    }
}

/// The assignments of the members from `first` on, which come after the `existing` ones. The plan was checked.
pub(super) fn compile(
    plan: &Plan,
    first: usize,
    existing: &[&Assignment],
    mut mint: impl FnMut() -> AssignmentId,
) -> Vec<Assignment> {
    let members = plan.agents.get(first..).unwrap_or_default();
    let nodes: Vec<(usize, &Member, u32)> = members
        .iter()
        .enumerate()
        .flat_map(|(n, member)| (1..=member.instances).map(move |instance| (first + n, member, instance)))
        .collect();
    let needs = needs(plan, &nodes, existing);
    let order = order(&needs);
    let mut place_of = vec![0u32; nodes.len()];
    for (n, node) in order.iter().enumerate() {
        place_of[*node] = (existing.len() + n) as u32;
    }
    let assign = |node: usize| {
        let (index, member, instance) = nodes[node];
        let mut needs: Vec<u32> = needs[node]
            .iter()
            .map(|need| match need {
                Need::Existing(place) => *place as u32,
                Need::New(node) => place_of[*node],
            })
            .collect();
        needs.sort_unstable();
        needs.dedup();
        Assignment {
            id: mint(),
            name: member.instance(instance),
            role: member.role.clone(),
            instance,
            member: index as u32,
            needs,
            stage: member.stage,
            added_by: None,
            depth: 0,
        }
    };
    order.into_iter().map(assign).collect()
}

#[derive(Clone, Copy)]
enum Need {
    Existing(usize),
    New(usize),
}

fn needs(plan: &Plan, nodes: &[(usize, &Member, u32)], existing: &[&Assignment]) -> Vec<Vec<Need>> {
    let mut called: BTreeMap<String, Vec<Need>> = BTreeMap::new();
    for (place, assignment) in existing.iter().enumerate() {
        called.entry(assignment.name.to_string()).or_default().push(Need::Existing(place));
        // Of several instances the name without a number means all.
        let family = plan.agents.get(assignment.member as usize).map(|member| &member.name);
        if let Some(family) = family.filter(|family| **family != assignment.name) {
            called.entry(family.to_string()).or_default().push(Need::Existing(place));
        }
    }
    let mut stages: BTreeMap<u32, Vec<Need>> = BTreeMap::new();
    for (node, (_, member, instance)) in nodes.iter().enumerate() {
        called.entry(member.name.to_string()).or_default().push(Need::New(node));
        if member.instances > 1 {
            called.entry(member.instance(*instance).to_string()).or_default().push(Need::New(node));
        }
        stages.entry(member.stage.unwrap_or_default()).or_default().push(Need::New(node));
    }
    let declared = |member: &Member| -> Vec<Need> {
        member.needs.iter().flat_map(|name| called.get(name.as_str()).cloned().unwrap_or_default()).collect()
    };
    let of = |(node, (_, member, _)): (usize, &(usize, &Member, u32))| match plan.strategy {
        Strategy::Parallel => Vec::new(),
        Strategy::Sequential => match (node.checked_sub(1), existing.len().checked_sub(1)) {
            (Some(before), _) => vec![Need::New(before)],
            (None, Some(last)) => vec![Need::Existing(last)],
            (None, None) => Vec::new(),
        },
        Strategy::Adaptive => declared(member),
        Strategy::Pipeline => {
            let before = stages.range(..member.stage.unwrap_or_default()).next_back();
            let mut needs = before.map(|(_, nodes)| nodes.clone()).unwrap_or_default();
            needs.extend(declared(member));
            needs
        }
    };
    nodes.iter().enumerate().map(of).collect()
}

/// The nodes in an order in which each comes after what it needs, and else as they are listed. What goes in circles is left
/// out.
fn order(needs: &[Vec<Need>]) -> Vec<usize> {
    let mut left = vec![0usize; needs.len()];
    let mut feeds: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (node, needs) in needs.iter().enumerate() {
        for need in needs {
            if let Need::New(other) = need {
                left[node] += 1;
                feeds[*other].push(node);
            }
        }
    }
    let free = left.iter().enumerate().filter(|(_, left)| **left == 0).map(|(node, _)| Reverse(node));
    let mut free: BinaryHeap<Reverse<usize>> = free.collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(Reverse(node)) = free.pop() {
        order.push(node);
        for next in &feeds[node] {
            left[*next] -= 1;
            if left[*next] == 0 {
                free.push(Reverse(*next));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Time, mission::plan};

    fn compiled(text: &str) -> Vec<Assignment> {
        let plan = plan::read(text, &plan::Terms::default()).unwrap();
        let mut n = 0;
        compile(&plan, 0, &[], || {
            n += 1;
            AssignmentId::new(Time::from_micros(1), n)
        })
    }

    fn shown(assignments: &[Assignment]) -> Vec<String> {
        let name = |place: &u32| assignments[*place as usize].name.as_str();
        assignments
            .iter()
            .map(|one| {
                format!("{} <- {}", one.name, one.needs.iter().map(name).collect::<Vec<_>>().join(" "))
            })
            .collect()
    }

    fn agents(strategy: &str, rest: &str) -> String {
        format!("objective = \"x\"\nstrategy = \"{strategy}\"\n{rest}")
    }

    #[test]
    fn every_strategy_becomes_one_graph() {
        let two =
            "[[agents]]\nname = \"a\"\ntask = \"t\"\ninstances = 2\n[[agents]]\nname = \"b\"\ntask = \"t\"\n";
        assert_eq!(shown(&compiled(&agents("parallel", two))), ["a-1 <- ", "a-2 <- ", "b <- "]);
        assert_eq!(shown(&compiled(&agents("sequential", two))), ["a-1 <- ", "a-2 <- a-1", "b <- a-2"]);
        let stages = "[[agents]]\nname = \"last\"\ntask = \"t\"\nstage = 2\n\
            [[agents]]\nname = \"a\"\ntask = \"t\"\ninstances = 2\nstage = 1\n";
        assert_eq!(shown(&compiled(&agents("pipeline", stages))), ["a-1 <- ", "a-2 <- ", "last <- a-1 a-2"]);
        let needs = "[[agents]]\nname = \"c\"\ntask = \"t\"\nneeds = [\"a\", \"b-2\"]\n\
            [[agents]]\nname = \"a\"\ntask = \"t\"\n\
            [[agents]]\nname = \"b\"\ntask = \"t\"\ninstances = 2\nneeds = [\"a\"]\n";
        assert_eq!(
            shown(&compiled(&agents("adaptive", needs))),
            ["a <- ", "b-1 <- a", "b-2 <- a", "c <- a b-2"]
        );
    }

    #[test]
    fn waves_and_the_heaviest_way_are_found() {
        let text = agents(
            "adaptive",
            "[[agents]]\nname = \"a\"\ntask = \"t\"\n[[agents]]\nname = \"b\"\ntask = \"t\"\nneeds = [\"a\"]\n\
            [[agents]]\nname = \"c\"\ntask = \"t\"\nneeds = [\"a\"]\n[[agents]]\nname = \"d\"\ntask = \"t\"\n\
            needs = [\"b\", \"c\"]\n[[agents]]\nname = \"e\"\ntask = \"t\"\n",
        );
        let graph = Graph::of(&compiled(&text));
        assert_eq!(graph.waves(), [vec![0, 4], vec![1, 2], vec![3]]);
        assert_eq!(graph.critical_path(|_| 1), [0, 1, 3]);
        assert_eq!(graph.critical_path(|place| if place == 2 { 5 } else { 1 }), [0, 2, 3]);
        assert_eq!(graph.critical_path(|place| if place == 4 { 50 } else { 1 }), [4]);
    }
}
