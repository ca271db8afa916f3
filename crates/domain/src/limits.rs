//! Every limit of Ostler in one place, each with its reason.
//!
//! A number that bounds memory, time or disk belongs here and nowhere else, so that one page answers
//! "what happens when it grows?".

use std::time::Duration;

use crate::price::Dollars;

// --- Tape and keeper -------------------------------------------------------------------------------------

/// Largest payload of one tape record. Longer lines become pieces: the keeper then never holds more than
/// this of an agent's line, and a torn tail costs at most one piece.
pub const PIECE_BYTES: usize = 256 * 1024;
/// Size at which a tape segment is closed. Small enough to compress and delete in units, large enough that a
/// busy day is a handful of files.
pub const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// What an agent may print without being slowed down: a whole build log at full speed.
pub const INTAKE_BURST_BYTES: u64 = 64 * 1024 * 1024;
/// The steady rate after the burst. Ten floods at once still leave a laptop's disk usable.
pub const INTAKE_BYTES_PER_SECOND: u64 = 8 * 1024 * 1024;
/// A session's tape pauses here, with the reason; a person raises it (`resume --tape`).
pub const TAPE_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// Longest exit record. It is written over a preallocated file of this size, so a full disk cannot lose it.
pub const EXIT_RECORD_BYTES: usize = 16 * 1024;
/// Largest keeper frame: one input (an RPC message) and its header.
pub const FRAME_BYTES: usize = 8 * 1024 * 1024;
/// How long the keeper goes on reading the agent's pipes after the agent is gone: a grandchild may hold them
/// open for ever.
pub const DRAIN_AFTER_EXIT: Duration = Duration::from_secs(2);
/// How often a keeper retries after ENOSPC.
pub const DISK_RETRY: Duration = Duration::from_secs(1);
/// First and longest pause before a keeper that lost its daemon starts one; doubled in between, with jitter
/// so that fifty keepers do not all start one at once.
pub const DAEMON_RESPAWN_FIRST: Duration = Duration::from_millis(200);
pub const DAEMON_RESPAWN_LONGEST: Duration = Duration::from_secs(60);
/// How long a lookout goes on starting daemons none of which comes to life: somebody has to look at that first.
pub const LOOKOUT_GIVES_UP: Duration = Duration::from_secs(24 * 3600);
/// The orderly stop: how long each rung may take before the next is tried.
pub const STOP_RUNG: Duration = Duration::from_secs(5);

// --- Sandbox ------------------------------------------------------------------------------------------------

/// Descriptors of one process inside; real agents use about a hundred.
pub const SANDBOX_OPEN_FILES: u64 = 4_096;
/// Processes and threads of one sandbox: ample for parallel builds, and the end of a fork bomb.
pub const SANDBOX_PROCESSES: u64 = 512;
/// Largest single file that an agent can write.
pub const SANDBOX_FILE_BYTES: u64 = 8 * 1024 * 1024 * 1024;
/// `/tmp`, `/var/tmp` and a home without a directory; they count as memory.
pub const SANDBOX_TMP_BYTES: u64 = 512 * 1024 * 1024;
pub const SANDBOX_SHM_BYTES: u64 = 64 * 1024 * 1024;
/// Memory that a process inside may lock.
pub const SANDBOX_LOCKED_BYTES: u64 = 8 * 1024 * 1024;
/// What of a person's configuration of git is read, of one file.
pub const GIT_CONFIG_BYTES: u64 = 1024 * 1024;
/// Agent programs outside of Ostler that are told of, of one kind.
pub const OUTSIDE_AGENTS: usize = 1_000;
/// How often a keeper adds up the memory of a session whose cgroup does not.
pub const MEMORY_LOOK: Duration = Duration::from_secs(1);
/// A campaign with more entries, or one that takes longer to look through, cannot be searched for hidden files.
pub const SCAN_ENTRIES: usize = 2_000_000;
pub const SCAN_TIME: Duration = Duration::from_secs(30);
/// What the repository knows of a work tree that an agent made in its sandbox's memory is copied there: an index of half a
/// million files, for so many trees, and the directories of its logs.
pub const OWN_TREE_BYTES: u64 = 128 * 1024 * 1024;
pub const OWN_TREES: usize = 8;
pub const OWN_TREE_DEPTH: u32 = 8;
/// Hidden files of one campaign. Each takes a mount, of which the kernel gives a sandbox a hundred thousand.
pub const MASKS: usize = 20_000;
/// Below a directory with a longer path nothing can be looked for: a path has at most 4096 bytes.
pub const SCAN_PATH_BYTES: usize = 3_584;
/// Looks for hidden files that may fail one after the other before the agent is stopped.
pub const FAILED_LOOKS: u32 = 2;
/// Different things that a traced command was not given and that are written down.
pub const TRACE_KEPT: usize = 2_000;
/// The part of the user's inotify instances and watches that one session may have: one in so many.
pub const INOTIFY_SHARE: u64 = 4;
/// Looks at a campaign that others are changing before its hidden files count as not coverable.
pub const MASK_LOOKS: usize = 40;
/// And how long they may take together: a person waits for the agent to start.
pub const MASK_TIME: Duration = Duration::from_secs(120);
/// How long a start waits for a placeholder that another session is just removing.
pub const PLACEHOLDER_WAIT: Duration = Duration::from_secs(10);
/// How often a warden that nobody tells about changes looks for new hidden files: a search of a large campaign is
/// given twenty times its own duration, so that it never takes more than a twentieth of a core.
pub const RESCAN: Duration = Duration::from_secs(5);
pub const RESCAN_REST_FACTOR: u32 = 20;
/// Directories that the daemon watches for new hidden files, in one campaign and in all. The kernel gives a user few
/// thousands at the least; beyond, wardens look for themselves.
pub const WATCHED_DIRECTORIES_OF_CAMPAIGN: usize = 2_048;
pub const WATCHED_DIRECTORIES: usize = 8_192;
/// How much of a campaign is looked through for them, and for how long.
pub const WALK_ENTRIES: usize = 200_000;
pub const WALK_TIME: Duration = Duration::from_secs(5);
/// Between two tellings of a warden what has changed: the first is told at once, a flood once a second.
pub const REMASK_PAUSE: Duration = Duration::from_secs(1);
/// Paths that are told one by one; beyond, the whole campaign is looked through.
pub const REMASK_PATHS: usize = 64;
/// How much of a git index is read to see which hidden files are tracked: half a million files.
pub const GIT_INDEX_BYTES: u64 = 64 * 1024 * 1024;
/// How much of a protected file or directory is compared; hooks and settings are far smaller.
pub const TAMPER_FILE_BYTES: u64 = 1024 * 1024;
pub const TAMPER_ENTRIES: usize = 10_000;

// --- Gateway ------------------------------------------------------------------------------------------------

/// Where an agent finds its gateway, on its own loopback. Each sandbox has a network of its own, so one number does.
pub const GATEWAY_PORT: u16 = 3128;
/// Connections of one session at a time; more wait to be accepted. Package managers use sixteen or so.
pub const GATEWAY_CONNECTIONS: usize = 64;
/// A gateway that nobody uses ends; the next connection starts another.
pub const GATEWAY_IDLE: Duration = Duration::from_secs(30);
/// Longest head of a request, and longest greeting of TLS.
pub const GATEWAY_HEAD_BYTES: usize = 16 * 1024;
/// How long a client may take for either.
pub const GATEWAY_HEAD_TIME: Duration = Duration::from_secs(10);
/// How long all addresses of a host may take to answer.
pub const GATEWAY_CONNECT_TIME: Duration = Duration::from_secs(10);
/// Silence after which a connection is cut that one side has closed: a client that died looks like one that listens.
pub const GATEWAY_HALF_OPEN: Duration = Duration::from_secs(30);
/// What one read takes, each way.
pub const GATEWAY_BUFFER_BYTES: usize = 16 * 1024;
/// Records of connections: a burst, then a steady rate. An agent that asks faster waits for its answers.
pub const GATEWAY_RECORDS_BURST: u32 = 256;
pub const GATEWAY_RECORDS_PER_SECOND: u32 = 16;
/// Longest record of a connection.
pub const GATEWAY_RECORD_BYTES: usize = 4 * 1024;
/// Between two starts of gateways that end at once.
pub const GATEWAY_RESPAWN: Duration = Duration::from_secs(1);
/// Longest head of a model's answer; providers say a lot in theirs, and none comes near this.
pub const MODEL_HEAD_BYTES: usize = 64 * 1024;
/// Longest line between the chunks of a body, and all lines behind the last one.
pub const MODEL_CHUNK_LINE_BYTES: usize = 8 * 1024;
/// How long a model's host may take to agree on TLS.
pub const MODEL_TLS_TIME: Duration = Duration::from_secs(15);
/// A model may think for minutes without a byte; one whose machine is gone is noticed by the kernel after about this
/// long: the first probe, then as many more at the same interval.
pub const MODEL_PROBE: Duration = Duration::from_secs(30);
pub const MODEL_PROBES: u32 = 4;
/// Longest event or answer that is read for its usage: some repeat everything that was said. What is longer counts from
/// the agent's report.
pub const METER_EVENT_BYTES: usize = 4 * 1024 * 1024;
/// Where an answer does not say what it took, this many bytes are taken for a token.
pub const METER_BYTES_PER_TOKEN: u64 = 4;
/// How long a call waits for more to be allowed, when a session has used up what it may. Clients give up after five or ten
/// minutes, and then call again and again.
pub const MODEL_HOLD: Duration = Duration::from_secs(4 * 60);
/// And when it may ask again, as it is then told.
pub const MODEL_RETRY_AFTER: Duration = Duration::from_secs(3_600);
/// How often a call that waits looks whether it may go on.
pub const MODEL_HOLD_LOOK: Duration = Duration::from_millis(200);
/// Longest name of an answer or a model.
pub const METER_NAME_BYTES: usize = 200;
/// How long connections that are cut at a session's end may take to be counted.
pub const GATEWAY_CUT_TIME: Duration = Duration::from_secs(2);

// --- Session socket -----------------------------------------------------------------------------------------

/// Longest line on the session socket: a call with its text, escaped.
pub const CALL_BYTES: usize = 64 * 1024;
/// Longest text within a call. A note is a note, not a document.
pub const CALL_TEXT_BYTES: usize = 16 * 1024;
/// Connections of one session at a time; more wait to be accepted.
pub const CALL_CONNECTIONS: usize = 16;
/// So many denials of one session are in the audit log; all of them are events.
pub const AUDITED_DENIALS: u32 = 1_000;
/// A connection that has not shown the session's token by then makes room for another.
pub const CALL_TOKEN_TIME: Duration = Duration::from_secs(5);
/// Calls of one session: a burst, then a steady rate. An agent that calls faster waits for its answers.
pub const CALLS_BURST: u64 = 64;
pub const CALLS_PER_SECOND: u64 = 8;
/// Calls of one connection that may wait for an answer; beyond, the oldest is no longer waited for.
pub const CALLS_WAITING: usize = 64;
/// What may wait for a caller that does not read; then its connection is closed.
pub const CALL_WAITING_BYTES: usize = 1024 * 1024;
/// How long a caller waits to hear that its call is on the tape, and for an answer without which it can go on.
pub const CALL_TAPED_TIME: Duration = Duration::from_secs(60);
pub const CALL_ANSWER_TIME: Duration = Duration::from_secs(5);
/// How long a caller waits for an answer that it cannot do without.
pub const CALL_READ_TIME: Duration = Duration::from_secs(30);
/// Steps of one session that may be open at once.
pub const STEPS_OPEN: usize = 64;

// --- Parsing what agents print ----------------------------------------------------------------------------

/// Longest line that is parsed; agents really send images in one line. Above: an OVERSIZE event.
pub const LINE_BYTES: usize = 32 * 1024 * 1024;
/// Largest database of another program's that is copied to be imported: OpenClaw itself prunes at 10 GB.
pub const FOREIGN_DATABASE_BYTES: u64 = 16 * 1024 * 1024 * 1024;
/// Deepest JSON that is parsed; deeper is opaque. serde_json's own guard is 128, far from our stack.
pub const JSON_DEPTH: usize = 64;
/// How much of an unrecognised line its event shows; the tape has the rest.
pub const OPAQUE_PREVIEW_BYTES: usize = 4 * 1024;

// --- Store --------------------------------------------------------------------------------------------------

/// How long tape batches wait for each other before a commit. Nobody waits for them, and one commit for many
/// sessions is what makes 10 000 events/s cost a tenth of a core.
pub const GATHER: Duration = Duration::from_millis(10);
/// A gathered batch this large commits without waiting further.
pub const GATHER_EVENTS: usize = 2_000;
/// How long the row of a busy session may be behind its events while it stays on the same lists. Readers never see
/// that; only the disk does, with a twentieth of the writing.
pub const SHOWN_WITHIN: Duration = Duration::from_secs(1);
/// Commits queued to the writer; senders wait beyond it (back-pressure down to the agent's pipe).
pub const WRITER_QUEUE: usize = 1_024;
/// Event bodies above this are content-addressed blobs: the log stays dense and quick to scan.
pub const INLINE_BODY_BYTES: usize = 16 * 1024;
/// Read-only connections; a long query must not stop the others.
pub const READERS: usize = 4;
/// Pages of the write-ahead log before the writer checkpoints (8 KiB each: 32 MB).
pub const CHECKPOINT_PAGES: u32 = 4_000;
/// Events after which a session's state is kept beside the log, so that a start folds only what came later.
pub const SNAPSHOT_EVENTS: u64 = 1_000;
/// How long a request id protects against doing a change twice.
pub const REQUEST_MEMORY: Duration = Duration::from_secs(24 * 3600);
/// Rows a filtered list may look at before it answers with a partial page and a cursor.
pub const SCAN_ROWS: usize = 50_000;
/// Accounts that one provider may have: each is looked at whenever providers are listed.
pub const PROVIDER_PROFILES: usize = 64;
/// Sessions that one budget is divided among, with all that ever were: beyond that no more helpers are asked for. Their
/// rows are read each time that one is.
pub const FAMILY_SESSIONS: u32 = 10_000;
/// Bodies that one page of events carries before it ends early, with a cursor.
pub const EVENT_PAGE_BYTES: usize = 8 * 1024 * 1024;
/// How far apart the order of the record and the order of its times may be: a clock that was set back. Lists
/// that ask for a time look this much further.
pub const CLOCK_SLACK: Duration = Duration::from_secs(24 * 3600);
/// Batches of new events kept for watchers that follow the end of the log; one that falls further behind reads
/// the log.
pub const TAIL_BATCHES: usize = 128;
/// Full-text search sees all of a message or call, and this much of a tool's result.
pub const SEARCH_RESULT_BYTES: usize = 4 * 1024;

// --- API ----------------------------------------------------------------------------------------------------

/// Largest request; prompts with pasted files fit, floods do not.
pub const REQUEST_BYTES: usize = 4 * 1024 * 1024;
/// Rows a list returns when it is not asked for a number, and at most.
pub const PAGE_DEFAULT: u32 = 50;
pub const PAGE_MOST: u32 = 1_000;
/// Words that one filter may have: each is a way of its own through an index.
pub const FILTER_WORDS: usize = 100;
/// Partial text a slow watcher may be behind before pieces are dropped (they are not events).
pub const DELTA_BUFFER: usize = 256;

/// Names of one label that measurements tell apart, such as models, which agents name: each is a series that somebody
/// keeps for months. What comes after them is counted together.
pub const METRIC_LABELS: usize = 64;

/// Size at which the daemon's log is put aside, and how many are kept: weeks of an ordinary daemon.
pub const LOG_BYTES: u64 = 16 * 1024 * 1024;
pub const LOG_FILES: u32 = 4;
/// What may be set: less would put a file aside for every line, and more would be files that nobody opens.
pub const LOG_LEAST_BYTES: u64 = 4 * 1024;
pub const LOG_MOST_FILES: u32 = 1_000;

// --- Names and texts ----------------------------------------------------------------------------------------

/// Longest name of a campaign, agent or conversation: fits a table and a file name.
pub const NAME_BYTES: usize = 64;
/// Longest name of a model.
pub const MODEL_BYTES: usize = 256;
/// Longest prompt or message.
pub const MESSAGE_BYTES: usize = 2 * 1024 * 1024;
/// Keys of models that may come with a request, and the longest; tokens of single sign-on have some kilobytes.
pub const CALLER_KEYS: usize = 32;
pub const CALLER_KEY_BYTES: usize = 64 * 1024;
/// Messages that may wait for one session. Far above a person's patience, far below memory.
pub const INBOX_MESSAGES: usize = 1_000;

// --- Sessions -----------------------------------------------------------------------------------------------

/// Inputs an actor queues; callers wait beyond it.
pub const ACTOR_INBOX: usize = 256;
/// Tape bytes an actor turns into one commit.
pub const TAPE_BATCH_BYTES: usize = 1024 * 1024;
/// A new agent must be ready within this time.
pub const WATCHDOG_START: Duration = Duration::from_secs(60);
/// First output of a turn.
pub const WATCHDOG_FIRST_OUTPUT: Duration = Duration::from_secs(120);
/// Silence within a turn, no tool running.
pub const WATCHDOG_SILENT: Duration = Duration::from_secs(600);
/// One tool call.
pub const WATCHDOG_TOOL: Duration = Duration::from_secs(3_600);
/// Model calls that fail and are made again, from the first that failed. Agents give up by themselves within minutes.
pub const WATCHDOG_RETRIES: Duration = Duration::from_secs(600);
/// How long each rung of the watchdog's ladder is given to help.
pub const WATCHDOG_RUNG: Duration = Duration::from_secs(60);
/// How long an agent waits for a person's answer: a night, and a morning. Then it is denied, and can go on.
pub const APPROVAL_WAITS: Duration = Duration::from_secs(12 * 3_600);
/// An idle session's process is kept for so long: memory is scarcer than the second that the next message waits.
pub const IDLE_STOP: Duration = Duration::from_secs(30 * 60);
/// Where others wait for its place, an idle session keeps it for so long: whoever has just got an answer may say more.
pub const GIVES_WAY_AFTER: Duration = Duration::from_secs(10);
/// Memory that an agent program usually takes once it runs: what is set aside for one that is just starting.
pub const AGENT_MEMORY_BYTES: u64 = 256 * 1024 * 1024;
/// How long what a new session takes is not yet seen in what the machine has free, and how long it counts as starting.
pub const START_SETTLES: Duration = Duration::from_secs(5);
/// How often those who wait are looked at although nothing happened: memory and disk tell nobody when they are free.
pub const ADMISSION_LOOK: Duration = Duration::from_secs(1);
/// How much of a project's own instructions an agent is told: an argument of a program has at most 128 KiB.
pub const PROJECT_TEXT_BYTES: usize = 64 * 1024;
/// Restarts of a crashed agent: first pause, longest pause, and how many in a row end in quarantine.
pub const RESTART_FIRST: Duration = Duration::from_secs(1);
pub const RESTART_LONGEST: Duration = Duration::from_secs(300);
pub const RESTARTS_IN_A_ROW: u32 = 5;
/// A login that ends sooner than this is renewed before a session is lent it. Renewing may make void what others were lent,
/// so that one which is refused this long before its end counts as ended.
pub const LOGIN_RENEWED_BEFORE: Duration = Duration::from_secs(60 * 60);
/// A life this long ends the row: the agent did work.
pub const RESTART_GOOD_LIFE: Duration = Duration::from_secs(600);
/// What was told of model calls by either source of tokens, and is remembered for what the other tells: of far more calls than
/// are under way at once.
pub const LEDGER_CALLS: usize = 128;
/// Share of a budget at which it warns, in percent.
pub const BUDGET_WARNS_AT_PERCENT: u64 = 80;
/// A turn whose call used up a budget has what it was paid for, and says it: after so much silence it waits for a call that
/// is not to begin.
pub const BUDGET_SETTLES: Duration = Duration::from_secs(10);
/// While one of its tools is under way, which may be a helper that waits for such a call itself, it has so long, however much
/// it says.
pub const BUDGET_TOOL_ENDS: Duration = Duration::from_secs(30);

// --- Telemetry ----------------------------------------------------------------------------------------------

/// Spans of one request to a collector, which take some hundred kilobytes, and how long they are gathered.
pub const TELEMETRY_BATCH: usize = 256;
pub const TELEMETRY_GATHER: Duration = Duration::from_secs(1);
/// Addresses of media that one mirrored delivery names, and how long each may be.
pub const MEDIA_URLS: usize = 32;
pub const MEDIA_URL_BYTES: usize = 2_048;
/// Pictures up to this size are in the pages that transcripts are exported as: a page of many still opens.
pub const PAGE_IMAGE_BYTES: u64 = 1024 * 1024;
/// Files of OpenClaw's that are kept beside the conversations of one agent, and what they may take.
pub const IMPORT_KEPT_FILES: usize = 20_000;
pub const IMPORT_KEPT_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// How long a transcript waits for more to write.
pub const TRANSCRIPT_GATHER: Duration = Duration::from_millis(500);
/// Tool calls of one session that wait for their results; what is beyond is never said.
pub const TELEMETRY_OPEN_TOOLS: usize = 256;
/// How much of a text goes along, where it does at all.
pub const TELEMETRY_TEXT_BYTES: usize = 8 * 1024;

// --- Notices ------------------------------------------------------------------------------------------------

/// How long a hook may take where it does not say.
pub const HOOK_TIME: Duration = Duration::from_secs(30);
/// How much of what a hook prints is kept for the daemon's log.
pub const HOOK_OUTPUT_BYTES: usize = 4 * 1024;
/// What happens may be seen to by who looks already: others hear of it after this; of an approval, at once.
pub const NOTICE_DWELL: Duration = Duration::from_secs(5);
/// Of one session or mission, a channel is told so often.
pub const NOTICE_EVERY: Duration = Duration::from_secs(60);
/// Notices that wait on one channel; what is beyond stays in the log.
pub const NOTICES_WAITING: usize = 1_024;
/// How long whoever looks is taken to look on.
pub const NOTICE_LOOK: Duration = Duration::from_secs(10);
/// How long the desktop may take to show something.
pub const DESKTOP_TIME: Duration = Duration::from_secs(10);
/// Channels that one machine may have.
pub const CHANNELS: usize = 32;
/// Links that answer one approval each, while nobody has followed them; the oldest gives way.
pub const APPROVAL_LINKS: usize = 256;
/// Older notices are not told any more: they would only be believed.
pub const NOTICE_KEPT: Duration = Duration::from_secs(24 * 3_600);
/// Between two tries to reach a webhook: first, and longest; doubled in between.
pub const WEBHOOK_FIRST: Duration = Duration::from_secs(1);
pub const WEBHOOK_LONGEST: Duration = Duration::from_secs(300);
/// How long a webhook may take to answer, and how much of its answer is read.
pub const WEBHOOK_TIME: Duration = Duration::from_secs(15);
pub const WEBHOOK_ANSWER_BYTES: usize = 16 * 1024;
/// How much of what went wrong the end of a turn has.
pub const TURN_FAILURE: usize = 300;
/// How much of a text a notice has.
pub const NOTICE_TEXT: usize = 400;

// --- Hub ----------------------------------------------------------------------------------------------------

/// Events that are on their way to a hub which has not said that it has them.
pub const HUB_WINDOW: usize = 512;
/// Events of one frame.
pub const HUB_FRAME_EVENTS: usize = 64;
/// The largest frame.
pub const HUB_FRAME_BYTES: usize = 16 * 1024 * 1024;
/// Before a hub that was lost is tried again: first, and longest.
pub const HUB_AGAIN_FIRST: Duration = Duration::from_secs(1);
pub const HUB_AGAIN_LONGEST: Duration = Duration::from_secs(300);
/// A sign of life is sent this often, and a line that was silent for the second is taken to be dead.
pub const HUB_PING: Duration = Duration::from_secs(15);
pub const HUB_SILENCE: Duration = Duration::from_secs(45);
/// How long a connection may take, to its first words.
pub const HUB_CONNECT_TIME: Duration = Duration::from_secs(15);
/// How often a node says anew what it lists, while that changes.
pub const HUB_ROWS_EVERY: Duration = Duration::from_secs(1);
/// Sessions of a node that a hub lists.
pub const HUB_ROWS: u32 = 500;
/// Events of one node that a hub keeps, at least; it keeps twice as many at most.
pub const HUB_KEPT_EVENTS: u64 = 5_000;
/// Nodes, and people and programs, that a hub knows.
pub const HUB_NODES: usize = 256;
/// How long a command by a hub may take.
pub const HUB_COMMAND_TIME: Duration = Duration::from_secs(30);
/// Commands whose answers a node remembers.
pub const HUB_COMMANDS_KEPT: usize = 256;
/// The longest answer to a command that goes back by a hub.
pub const HUB_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// The longest time for which something is shared.
pub const SHARE_LONGEST: Duration = Duration::from_secs(90 * 86_400);

// --- Snapshots ----------------------------------------------------------------------------------------------

/// How long a snapshot of a tree may take; a tree that takes longer is left alone for a while.
pub const SNAPSHOT_TIME: Duration = Duration::from_secs(60);
pub const SNAPSHOT_AGAIN: Duration = Duration::from_secs(600);
/// How long an agent's start waits for the snapshot of what it finds: small trees take a tenth of a second.
pub const SNAPSHOT_START_WAIT: Duration = Duration::from_secs(3);
/// How long who asks for the last snapshot of a turn that has just ended waits for it.
pub const SNAPSHOT_SETTLES: Duration = Duration::from_secs(10);
/// Files and bytes of a directory that is written down although it is no repository's top: nobody says there what to ignore.
pub const SNAPSHOT_TREE_FILES: usize = 20_000;
pub const SNAPSHOT_TREE_BYTES: u64 = 512 << 20;
/// Largest file of a snapshot's repository: compressed, and larger than any text.
pub const SNAPSHOT_FILE_BYTES: u64 = 1 << 30;
/// Snapshots that are taken at once, of all campaigns: agents come first.
pub const SNAPSHOTS_AT_ONCE: usize = 2;
/// How long git may take to compare two snapshots, or to put one back.
pub const GIT_TIME: Duration = Duration::from_secs(60);
/// A work tree is a whole checkout: of a large repository on a slow disk it takes its time, once.
pub const WORKTREE_TIME: Duration = Duration::from_secs(300);
/// How often a taken name is numbered: whoever has so many work trees of one name wants to hear of it.
pub const WORKTREE_NAMES: u32 = 1_000;
/// Ignored files and directories that are named before a work tree goes.
pub const WORKTREE_IGNORED: usize = 50;
/// Work trees that are looked at for a list; each look is a run of git.
pub const WORKTREES_LOOKED_AT: usize = 500;
/// How long messages may wait for more of them to come, at most: an hour.
pub const QUEUE_DEBOUNCE_MS: u64 = 3_600_000;
/// How much of a difference is handed out; the rest is said to be missing.
pub const DIFF_BYTES: usize = 4 * 1024 * 1024;
/// How much of a difference is looked at before files are put back: all of it, or none are.
pub const REWIND_BYTES: usize = 64 * 1024 * 1024;
/// Files that are named of one difference.
pub const DIFF_FILES: usize = 20_000;

/// What a copy of somebody who is gone may use for one answer, where nobody says otherwise: enough to take in a long
/// dialogue once. Dollars count only where the model has a price.
pub const SEANCE_TOKENS: u64 = 250_000;
pub const SEANCE_DOLLARS: Dollars = Dollars(500_000);
/// And how long it may take.
pub const SEANCE_TIME: Duration = Duration::from_secs(10 * 60);

// --- Missions -----------------------------------------------------------------------------------------------

/// Largest file of a plan: a person wrote it.
pub const PLAN_BYTES: usize = 1024 * 1024;
/// Assignments of one mission: each decision looks at those that may start, each page at all.
pub const MISSION_ASSIGNMENTS: usize = 10_000;
/// Dependencies of one mission, from assignment to assignment: what is recorded with it, and walked when something ends.
pub const MISSION_EDGES: usize = 200_000;
/// Longest task: it is what an agent is told.
pub const TASK_BYTES: usize = 256 * 1024;
/// How much an assignment's result hands on of what its agent said last; more belongs into a file.
pub const RESULT_BYTES: usize = 64 * 1024;
/// How much an agent is told of what those before it have done, all of them together.
pub const BRIEF_RESULTS_BYTES: usize = 128 * 1024;
/// How much of a command's output, or of a reason, a mission's events have.
pub const MISSION_TEXT_BYTES: usize = 4 * 1024;
/// How long a command may take that says whether an assignment is done, or whether a merge stands.
pub const CHECK_WITHIN: Duration = Duration::from_secs(30 * 60);
/// How much of what was done before says how long the like takes: the newest of each role.
pub const HISTORY_SAMPLES: u32 = 200;
/// How much of it there must be before anything is said: the next of a sort takes as long as one between the shortest and
/// the longest of four in three of five cases, which is what an interval claims. Of fewer it would claim too much.
pub const HISTORY_LEAST: usize = 4;
/// How often an assignment whose agent failed is tried again, where nobody says.
pub const MISSION_RETRIES: u32 = 1;
/// Most tries that a plan may ask for: a thing that failed twenty times does not work.
pub const MISSION_RETRIES_MOST: u32 = 20;
/// Between two tries of an assignment: first, and longest; doubled in between.
pub const MISSION_RETRY_FIRST: Duration = Duration::from_secs(5);
pub const MISSION_RETRY_LONGEST: Duration = Duration::from_secs(300);
/// How long a member's session must have been in the line for a place to be told of: whatever is shorter is its start.
pub const MISSION_WAIT_TOLD: Duration = Duration::from_secs(1);
/// How often a session that could not be created for a passing reason is tried again.
pub const MISSION_START_TRIES: u32 = 5;
/// Assignments that agents may add to a mission, and how deep, where its plan does not say.
pub const MISSION_ADDED: u32 = 16;
pub const MISSION_ADDED_DEPTH: u32 = 2;
/// Directories in which a daemon looks for programs because those who asked it do.
pub const SEARCH_DIRS: usize = 64;
/// Calls without a result of one mission's members that are remembered.
pub const CALLS_WATCHED: usize = 10_000;
/// Results and writes of one member that are known again; when there are more, all of them are forgotten.
pub const RESULTS_KNOWN: usize = 4_096;
/// The same call with the same result so often in a row is a loop.
pub const LOOP_REPEATS: u32 = 5;
/// Calls that are remembered to see a loop of several steps.
pub const LOOP_WINDOW: usize = 24;
/// Longest loop of several steps that is looked for.
pub const LOOP_STEPS: usize = 6;
/// Calls without a new file, commit or result after which an agent is not getting on.
pub const NO_PROGRESS_CALLS: u32 = 60;
/// Calls for which an agent that was told so is left in peace while it has not got the message: not every agent can be
/// told something within a turn.
pub const NUDGE_UNREAD_CALLS: u32 = 20;
/// Entries of a directory that are looked at to see whether anything in it is new.
pub const FRESH_ENTRIES: usize = 50_000;
/// Forecasts of collisions that a mission remembers.
pub const COLLISIONS: usize = 100;
/// Paths that a forecast names.
pub const COLLISION_PATHS: usize = 20;
/// Others with whose trees one member's is compared after a turn.
pub const FORECAST_OTHERS: usize = 64;
/// Those of them that work, and whose trees are looked at as they are: each look takes as long as git's of a whole tree.
pub const FORECAST_RUNNING: usize = 8;
/// Files and directories that one session's leases come to: each is a mount of its sandbox.
pub const LEASED_PATHS: usize = 1_000;
/// Entries of directories that are looked at for one pattern of a lease.
pub const LEASE_LOOKS: usize = 100_000;
