-- version 1
CREATE TABLE agent(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    campaign TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER,
    profile TEXT NOT NULL
) STRICT;
CREATE TABLE approval(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tail TEXT NOT NULL,
    session INTEGER NOT NULL,
    ask TEXT NOT NULL,
    tool TEXT NOT NULL,
    input TEXT NOT NULL,
    state TEXT NOT NULL,
    asked INTEGER NOT NULL,
    answered INTEGER,
    answered_by TEXT,
    message TEXT,
    kind TEXT NOT NULL,
    asks TEXT NOT NULL,
    why TEXT NOT NULL,
    -- When it is denied if nobody answers; empty while its session is paused.
    deadline INTEGER,
    -- Those that answered it, as JSON.
    rules TEXT
) STRICT;
CREATE TABLE assignment(
    id TEXT PRIMARY KEY,
    mission INTEGER NOT NULL,
    role TEXT NOT NULL,
    type TEXT NOT NULL,
    model TEXT,
    -- When it began; of one that is over, moved by its pauses: it took from then until its end.
    started INTEGER,
    -- How it ended, and when; empty while it has not.
    status TEXT,
    ended INTEGER,
    tokens INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE campaign(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER,
    policy TEXT NOT NULL
) STRICT;
CREATE TABLE conversation(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    -- The last characters of the id, backwards: people type ends of ids.
    tail TEXT NOT NULL,
    campaign TEXT NOT NULL,
    -- The registered agent whose it is; empty for none, so that keys of those are compared too.
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    -- The key in lower case: what keys are compared by.
    folded TEXT NOT NULL,
    name TEXT NOT NULL,
    opened INTEGER NOT NULL,
    -- When something was last said to it, or a session of it began.
    active INTEGER NOT NULL,
    forked_from TEXT,
    forked_at TEXT,
    spawned_by TEXT,
    replaces TEXT,
    closed INTEGER,
    close_reason TEXT,
    notes TEXT NOT NULL
) STRICT;
CREATE TABLE drain(
    only INTEGER PRIMARY KEY CHECK (only = 1),
    drained_by TEXT NOT NULL,
    why TEXT NOT NULL,
    since INTEGER NOT NULL
) STRICT;
CREATE TABLE halt(
    only INTEGER PRIMARY KEY CHECK (only = 1),
    freeze INTEGER NOT NULL,
    halted_by TEXT NOT NULL,
    why TEXT NOT NULL,
    since INTEGER NOT NULL
) STRICT;
CREATE TABLE history(
    source TEXT NOT NULL,
    dialogue TEXT NOT NULL,
    -- The last session made of it.
    session INTEGER NOT NULL,
    file TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    prints TEXT NOT NULL,
    memory TEXT NOT NULL,
    PRIMARY KEY (source, dialogue)
) STRICT, WITHOUT ROWID;
CREATE TABLE history_call(
    provider TEXT NOT NULL,
    call TEXT NOT NULL,
    PRIMARY KEY (provider, call)
) STRICT, WITHOUT ROWID;
CREATE TABLE image(
    seq INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    blob BLOB NOT NULL
) STRICT;
CREATE TABLE log_event(
    seq INTEGER PRIMARY KEY,
    session INTEGER,
    session_seq INTEGER,
    -- When it was recorded: grows, except for a clock that was set back.
    time INTEGER NOT NULL,
    -- When it happened, where that was before somebody wrote it down here: what was imported.
    happened INTEGER,
    kind INTEGER NOT NULL,
    body TEXT,
    blob BLOB,
    CHECK ((session IS NULL) = (session_seq IS NULL)),
    CHECK ((body IS NULL) <> (blob IS NULL))
) STRICT;
CREATE TABLE lost(
    num INTEGER PRIMARY KEY,
    -- When the machine came back.
    restarted INTEGER NOT NULL
) STRICT;
CREATE TABLE message(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation TEXT NOT NULL,
    session INTEGER NOT NULL,
    receipt TEXT NOT NULL,
    mode TEXT NOT NULL,
    head TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    text_seq INTEGER NOT NULL,
    said_by TEXT NOT NULL,
    rule TEXT,
    key TEXT,
    turn INTEGER,
    why TEXT,
    made_room_for TEXT,
    accepted INTEGER NOT NULL,
    sent INTEGER,
    delivered INTEGER,
    seen INTEGER,
    answered INTEGER,
    ended INTEGER
) STRICT;
CREATE TABLE mirrored(
    seq INTEGER PRIMARY KEY,
    conversation TEXT NOT NULL,
    session TEXT NOT NULL
) STRICT;
CREATE TABLE mission(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tail TEXT NOT NULL,
    campaign TEXT NOT NULL,
    name TEXT NOT NULL,
    objective TEXT NOT NULL,
    strategy TEXT NOT NULL,
    status TEXT NOT NULL,
    created INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    updated INTEGER NOT NULL,
    -- 1 while somebody has it paused, and while something holds all of it.
    paused INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE mission_event(
    mission INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (mission, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE node_garbage(
    blob BLOB PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE node_meta(
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE node_outbox(
    session INTEGER NOT NULL REFERENCES node_session(session),
    input_no INTEGER NOT NULL,
    tag TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (session, input_no)
) STRICT, WITHOUT ROWID;
CREATE TABLE node_request(
    request_id TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    reply TEXT NOT NULL,
    time INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE node_session(
    session INTEGER PRIMARY KEY,
    tape_offset INTEGER NOT NULL DEFAULT 0,
    assembler TEXT NOT NULL DEFAULT '',
    dialogue BLOB NOT NULL DEFAULT x'',
    dialogue_version INTEGER NOT NULL DEFAULT 0,
    last_input_no INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE node_snapshot(
    session INTEGER PRIMARY KEY REFERENCES node_session(session),
    state TEXT NOT NULL
) STRICT;
CREATE TABLE node_transcript(
    conversation TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    scribe TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE restart_refused(
    session TEXT PRIMARY KEY,
    -- Since when, why, and what would cure it: JSON. NULL where a person wants it to stay as it is.
    refusal TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE retention(
    num INTEGER PRIMARY KEY,
    archived INTEGER,
    -- When what was said is deleted.
    due INTEGER,
    deleted INTEGER,
    restored INTEGER,
    held INTEGER,
    held_by TEXT,
    held_why TEXT,
    -- The rule that was last followed.
    rule TEXT
) STRICT;
CREATE TABLE seen_commit(
    seq INTEGER NOT NULL,
    place INTEGER NOT NULL,
    session TEXT NOT NULL,
    turn INTEGER NOT NULL,
    branch TEXT,
    hash TEXT NOT NULL,
    subject TEXT NOT NULL,
    PRIMARY KEY (seq, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE seen_head(
    session TEXT PRIMARY KEY,
    branch TEXT,
    head TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE session(
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    -- The last characters of the id, backwards: people type ends of ids.
    tail TEXT NOT NULL,
    campaign TEXT NOT NULL,
    conversation TEXT NOT NULL,
    name TEXT NOT NULL,
    -- The agent's name; that of the conversation where none is registered.
    agent TEXT NOT NULL,
    role TEXT,
    provider TEXT NOT NULL,
    -- The ticket's id; whatever was said of it where it is none.
    ticket TEXT,
    -- The mission whose assignment it works on.
    mission TEXT,
    chain TEXT NOT NULL,
    continues TEXT,
    spawned_by TEXT,
    -- What was checked out when it was created.
    branch TEXT,
    created INTEGER NOT NULL,
    -- 1 for one that ran outside of Ostler.
    imported INTEGER NOT NULL,
    model TEXT,
    provider_id TEXT,
    status TEXT NOT NULL,
    attention TEXT,
    outcome TEXT,
    ended INTEGER,
    -- When a session that goes on with this one is due; empty once there is one.
    restart_due INTEGER,
    -- How many binary digits what is paid for it has, in millionths of a dollar: it changes a few times in a life, where
    -- the cost itself changes with every call.
    cost_class INTEGER NOT NULL
) STRICT;
CREATE TABLE session_view(
    num INTEGER PRIMARY KEY,
    view TEXT NOT NULL
) STRICT;
CREATE TABLE snapshot(
    seq INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    campaign TEXT NOT NULL,
    turn INTEGER NOT NULL,
    cause TEXT NOT NULL,
    time INTEGER NOT NULL,
    -- Its name there; NULL where it could not be taken.
    commit_name TEXT,
    files INTEGER NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    why TEXT
) STRICT;
CREATE TABLE ticket(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    -- The last characters of the id, backwards: people type ends of ids.
    tail TEXT NOT NULL,
    campaign TEXT NOT NULL,
    intent TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    -- What it is elsewhere: gh:shop#412.
    external TEXT,
    -- The dialogue in which it is worked on; NULL for work that needs no memory.
    conversation TEXT,
    added INTEGER NOT NULL,
    added_by TEXT NOT NULL,
    -- When its status last changed, and why.
    moved INTEGER NOT NULL,
    why TEXT
) STRICT;
CREATE TABLE ticket_checkpoint(
    seq INTEGER PRIMARY KEY,
    ticket TEXT NOT NULL,
    name TEXT NOT NULL,
    session TEXT,
    turn INTEGER,
    snapshot TEXT,
    made INTEGER NOT NULL,
    made_by TEXT NOT NULL
) STRICT;
CREATE TABLE ticket_dependency(
    ticket TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    PRIMARY KEY (ticket, depends_on)
) STRICT, WITHOUT ROWID;
CREATE TABLE ticket_output(
    seq INTEGER PRIMARY KEY,
    ticket TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    session TEXT
) STRICT;
CREATE TABLE ticket_step(
    seq INTEGER PRIMARY KEY,
    ticket TEXT NOT NULL,
    name TEXT NOT NULL,
    session INTEGER,
    started INTEGER,
    ended INTEGER,
    success INTEGER,
    note TEXT NOT NULL
) STRICT;
CREATE TABLE usage(
    seq INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    campaign TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT,
    time INTEGER NOT NULL,
    input INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    -- Millionths of a dollar, at the price that held then; NULL where the model had none.
    cost INTEGER,
    -- 1 where a subscription covers the call.
    plan INTEGER NOT NULL
) STRICT;
CREATE TABLE worktree(
    path TEXT PRIMARY KEY,
    -- Of the first session that was to have it.
    seq INTEGER NOT NULL,
    campaign TEXT NOT NULL,
    -- The last one that was to work in it.
    session TEXT NOT NULL,
    branch TEXT NOT NULL,
    base TEXT NOT NULL,
    came_from TEXT,
    -- When it was last made; NULL where it was not yet.
    made INTEGER,
    removed INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX agent_name ON agent(campaign, name) WHERE removed IS NULL;
CREATE INDEX approval_open ON approval(seq) WHERE state = 'open';
CREATE INDEX approval_tail ON approval(tail);
CREATE INDEX assignment_history ON assignment(role, ended) WHERE status = 'completed';
CREATE INDEX assignment_mission ON assignment(mission, status);
CREATE UNIQUE INDEX campaign_name ON campaign(name) WHERE removed IS NULL;
CREATE UNIQUE INDEX campaign_path ON campaign(path) WHERE removed IS NULL;
CREATE INDEX conversation_active ON conversation(active);
CREATE INDEX conversation_agent ON conversation(agent) WHERE agent <> '';
CREATE INDEX conversation_campaign ON conversation(campaign);
CREATE INDEX conversation_key ON conversation(folded);
CREATE INDEX conversation_name ON conversation(name);
CREATE UNIQUE INDEX conversation_open ON conversation(campaign, agent, folded) WHERE closed IS NULL;
CREATE INDEX conversation_spawned_by ON conversation(spawned_by) WHERE spawned_by IS NOT NULL;
CREATE INDEX conversation_tail ON conversation(tail);
CREATE INDEX image_blob ON image(blob);
CREATE INDEX image_session ON image(session);
CREATE INDEX log_event_blob ON log_event(blob) WHERE blob IS NOT NULL;
CREATE UNIQUE INDEX log_event_session ON log_event(session, session_seq) WHERE session IS NOT NULL;
CREATE INDEX message_conversation ON message(conversation);
CREATE INDEX message_key ON message(key) WHERE key IS NOT NULL;
CREATE INDEX message_made_room ON message(made_room_for) WHERE made_room_for IS NOT NULL;
CREATE INDEX message_session ON message(session);
CREATE INDEX mirrored_conversation ON mirrored(conversation);
CREATE INDEX mirrored_session ON mirrored(session);
CREATE INDEX mission_campaign ON mission(campaign);
CREATE INDEX mission_name ON mission(name);
CREATE INDEX mission_open ON mission(seq) WHERE ended IS NULL;
CREATE INDEX mission_status ON mission(status);
CREATE INDEX mission_tail ON mission(tail);
CREATE INDEX node_request_time ON node_request(time);
CREATE INDEX retention_due ON retention(due) WHERE due IS NOT NULL AND deleted IS NULL;
CREATE INDEX seen_commit_branch ON seen_commit(branch) WHERE branch IS NOT NULL;
CREATE INDEX seen_commit_session ON seen_commit(session);
CREATE INDEX session_agent ON session(agent);
CREATE INDEX session_branch ON session(branch) WHERE branch IS NOT NULL;
CREATE INDEX session_campaign ON session(campaign);
CREATE INDEX session_chain ON session(chain);
CREATE INDEX session_continues ON session(continues) WHERE continues IS NOT NULL;
CREATE INDEX session_conversation ON session(conversation);
CREATE INDEX session_cost_class ON session(cost_class) WHERE cost_class > 0;
CREATE INDEX session_ended_status ON session(status) WHERE ended IS NOT NULL;
CREATE INDEX session_failed ON session(ended) WHERE status = 'FAILED';
CREATE UNIQUE INDEX session_live ON session(conversation) WHERE ended IS NULL;
CREATE INDEX session_mission ON session(mission) WHERE mission IS NOT NULL;
CREATE INDEX session_model ON session(model) WHERE model IS NOT NULL;
CREATE INDEX session_name ON session(name);
CREATE INDEX session_not_ended ON session(num) WHERE ended IS NULL;
CREATE INDEX session_outcome ON session(outcome) WHERE outcome IS NOT NULL;
CREATE INDEX session_provider ON session(provider);
CREATE INDEX session_provider_id ON session(provider_id) WHERE provider_id IS NOT NULL;
CREATE INDEX session_restart_due ON session(num) WHERE restart_due IS NOT NULL;
CREATE INDEX session_role ON session(role) WHERE role IS NOT NULL;
CREATE INDEX session_spawned_by ON session(spawned_by) WHERE spawned_by IS NOT NULL;
CREATE INDEX session_tail ON session(tail);
CREATE INDEX session_ticket ON session(ticket) WHERE ticket IS NOT NULL;
CREATE INDEX snapshot_commit ON snapshot(commit_name) WHERE commit_name IS NOT NULL;
CREATE INDEX snapshot_session ON snapshot(session);
CREATE INDEX ticket_campaign ON ticket(campaign);
CREATE INDEX ticket_checkpoint_ticket ON ticket_checkpoint(ticket);
CREATE INDEX ticket_conversation ON ticket(conversation) WHERE conversation IS NOT NULL;
CREATE INDEX ticket_dependency_on ON ticket_dependency(depends_on);
CREATE UNIQUE INDEX ticket_external ON ticket(campaign, external) WHERE external IS NOT NULL;
CREATE INDEX ticket_output_ticket ON ticket_output(ticket);
CREATE INDEX ticket_reference ON ticket(external) WHERE external IS NOT NULL;
CREATE INDEX ticket_status ON ticket(status);
CREATE INDEX ticket_step_ticket ON ticket_step(ticket, name);
CREATE INDEX ticket_tail ON ticket(tail);
CREATE INDEX ticket_type ON ticket(type);
CREATE INDEX usage_campaign ON usage(campaign, time);
CREATE INDEX usage_session ON usage(session);
CREATE INDEX usage_time ON usage(time);
