//! From the tape to inputs: reads records, joins them to lines, and lets the dialogue say what they mean.

use std::path::Path;

use ostler_domain::{
    Time,
    call::Call,
    denied::{Denied, DeniedKind},
    event::Process,
    gateway::{ModelCall, Network},
    session::{CallUsage, Input, Refused, Spawn},
};
use ostler_providers::{Dialogue, DialogueState, Heard, Provider, Say};
use ostler_store::TapeMark;
use ostler_tape::{Assembler, AssemblerState, KeeperNote, Line, Reader, Stream, reader::ReadError};

/// Bytes folded in one go while a dialogue's state is rebuilt.
const FOLD_BYTES: usize = 1024 * 1024;

/// A tape being read, and everything that is remembered of what was read.
pub(crate) struct Intake {
    reader: Reader,
    assembler: Assembler,
    dialogue: Box<dyn Dialogue>,
}

/// What a stretch of tape meant.
#[derive(Default)]
pub(crate) struct Harvest {
    /// In the order of the tape, each with the time at which it was taped.
    pub(crate) taken: Vec<(Time, Taken)>,
    pub(crate) deltas: Vec<String>,
    /// The last input number that was read back.
    pub(crate) taped_input: Option<u64>,
    /// Whether the agent itself said anything.
    pub(crate) output: bool,
    /// It said something on standard error.
    pub(crate) logged: bool,
    /// Whether anything was read at all.
    pub(crate) moved: bool,
}

/// One thing that a line came to.
pub(crate) enum Taken {
    Input(Input),
    /// What the dialogue answers by itself.
    Say(Say),
}

impl Harvest {
    fn input(&mut self, at: Time, input: Input) {
        self.taken.push((at, Taken::Input(input)));
    }
}

impl Intake {
    /// Opens a session's tape where the last commit left it.
    pub(crate) fn open(
        dir: &Path,
        provider: &dyn Provider,
        mark: Option<&TapeMark>,
    ) -> Result<Self, ReadError> {
        let mut reader = Reader::open(dir)?;
        let Some(mark) = mark else {
            return Ok(Self { reader, assembler: Assembler::new(0), dialogue: fresh(provider) });
        };
        let state = DialogueState { version: mark.dialogue_version, bytes: mark.dialogue.clone() };
        let assembler_state: Option<AssemblerState> = serde_json::from_str(&mark.assembler).ok();
        match (provider.dialogue(Some(&state)), assembler_state) {
            (Ok(dialogue), Some(assembler_state)) => {
                let assembler = Assembler::restore(assembler_state, &mut reader, mark.offset)?;
                Ok(Self { reader, assembler, dialogue })
            }
            // Written by another version: its state is a function of the tape, so the tape gives it back.
            _ => Self::fold(reader, provider, mark.offset),
        }
    }

    fn fold(reader: Reader, provider: &dyn Provider, committed: u64) -> Result<Self, ReadError> {
        let mut intake = Self { reader, assembler: Assembler::new(0), dialogue: fresh(provider) };
        let mut discarded = Vec::new();
        while intake.assembler.offset() < committed {
            let batch = intake.reader.read_from(intake.assembler.offset(), FOLD_BYTES)?;
            if batch.is_empty() {
                break;
            }
            let mut lines = Vec::new();
            for record in batch.records().take_while(|record| record.start < committed) {
                intake.assembler.push(record, &mut lines);
            }
            for line in &lines {
                intake.dialogue.on_line(line, &mut discarded);
                discarded.clear();
            }
        }
        Ok(intake)
    }

    pub(crate) fn offset(&self) -> u64 {
        self.assembler.offset()
    }

    pub(crate) fn dialogue(&self) -> &dyn Dialogue {
        self.dialogue.as_ref()
    }

    /// Reads at most this much further.
    pub(crate) fn read(&mut self, most: usize) -> Result<Harvest, ReadError> {
        let batch = self.reader.read_from(self.assembler.offset(), most)?;
        let mut harvest = Harvest { moved: !batch.is_empty(), ..Harvest::default() };
        let mut heard = Vec::new();
        let mut lines = Vec::new();
        let damaged_at = batch.damage.first().map_or(Time::default(), |_| newest(&batch));
        for damage in &batch.damage {
            harvest.input(damaged_at, Input::TapeDamaged { from: damage.from, to: damage.to });
        }
        for record in batch.records() {
            self.assembler.push(record, &mut lines);
            for line in lines.drain(..) {
                take(&line, &mut harvest);
                self.dialogue.on_line(&line, &mut heard);
                let at = Time::from_micros(line.time_us);
                for heard in heard.drain(..) {
                    match heard {
                        Heard::Report(report) => harvest.input(at, Input::Report(report)),
                        Heard::Say(say) => harvest.taken.push((at, Taken::Say(say))),
                        Heard::Delta(text) => harvest.deltas.push(text),
                    }
                }
            }
        }
        Ok(harvest)
    }

    /// What is committed with the events of everything read so far.
    pub(crate) fn mark(&self) -> TapeMark {
        let dialogue = self.dialogue.state();
        TapeMark {
            offset: self.assembler.offset(),
            assembler: serde_json::to_string(&self.assembler.state()).unwrap_or_default(),
            dialogue: dialogue.bytes,
            dialogue_version: dialogue.version,
        }
    }
}

/// What the keeper's own records mean, whoever the agent is.
fn take(line: &Line<'_>, harvest: &mut Harvest) {
    let at = Time::from_micros(line.time_us);
    match line.stream {
        Stream::Out => harvest.output = true,
        Stream::Err => harvest.logged = true,
        Stream::In => {
            if let Some(input) = &line.input {
                harvest.taped_input = Some(input.input_no);
                harvest.input(at, Input::InputTaped { tag: input.tag.clone() });
            }
        }
        Stream::Keeper => {
            let input = match KeeperNote::decode(line.body.bytes()) {
                Ok(KeeperNote::Started { pid, start_time, holds_calls, .. }) => {
                    Some(Input::Spawned(Spawn { agent: Process { pid, start_time }, holds_calls }))
                }
                Ok(KeeperNote::Tampered { names }) => Some(Input::Tampered { names }),
                Ok(KeeperNote::CallRefused { reason }) => Some(Input::Denied(Denied {
                    kind: DeniedKind::Call,
                    target: "session socket".to_owned(),
                    rule: reason,
                    grant: None,
                })),
                _ => None,
            };
            if let Some(input) = input {
                harvest.input(at, input);
            }
        }
        Stream::Net => {
            if let Ok(network) = serde_json::from_slice::<Network>(line.body.bytes()) {
                harvest.input(at, Input::Network(network));
            }
        }
        Stream::Call => {
            harvest.output = true;
            let call = Call::parse(line.body.bytes());
            harvest.input(at, Input::Call { at: line.start, call });
        }
        Stream::Wire => {
            let Ok(call) = serde_json::from_slice::<ModelCall>(line.body.bytes()) else { return };
            if let Some(refused) = Refused::of(&call) {
                harvest.input(at, Input::Refused(refused));
            }
            if call.is_cut_short() {
                let (model, call) = (call.model.clone(), call.id.clone().or(call.request_id.clone()));
                harvest.input(at, Input::CutShort { model, call });
            }
            if let Some(used) = CallUsage::of(call) {
                harvest.input(at, Input::Wire(used));
            }
        }
        Stream::Exit => {}
    }
}

fn newest(batch: &ostler_tape::Batch) -> Time {
    Time::from_micros(batch.records().next_back().map_or(0, |record| record.record.time_us))
}

fn fresh(provider: &dyn Provider) -> Box<dyn Dialogue> {
    provider.dialogue(None).unwrap_or_else(|_| unreachable!("a dialogue begins without a state"))
}
