-- What this node needs to go on. Not derived from the log and not part of it.
CREATE TABLE node_meta(
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- How far a session's tape has been taken in, and the state of its dialogue at that place.
CREATE TABLE node_session(
    session INTEGER PRIMARY KEY,
    tape_offset INTEGER NOT NULL DEFAULT 0,
    assembler TEXT NOT NULL DEFAULT '',
    dialogue BLOB NOT NULL DEFAULT x'',
    dialogue_version INTEGER NOT NULL DEFAULT 0,
    last_input_no INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A session's folded state at one of its events: a shortcut for the next start, never the truth.
CREATE TABLE node_snapshot(
    session INTEGER PRIMARY KEY REFERENCES node_session(session),
    state TEXT NOT NULL
) STRICT;

-- Bytes for agents: sent after the commit, gone once the tape has them.
CREATE TABLE node_outbox(
    session INTEGER NOT NULL REFERENCES node_session(session),
    input_no INTEGER NOT NULL,
    tag TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (session, input_no)
) STRICT, WITHOUT ROWID;

-- Changes done, by the caller's id for them, with the answer given.
CREATE TABLE node_request(
    request_id TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    reply TEXT NOT NULL,
    time INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX node_request_time ON node_request(time);

-- How far a conversation's transcript is written, and what its scribe remembers at that place.
CREATE TABLE node_transcript(
    conversation TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    scribe TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Blobs that no event names any more, until their files are gone.
CREATE TABLE node_garbage(
    blob BLOB PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
