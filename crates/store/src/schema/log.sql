-- The truth. Rows are only ever added, and only by the writer, which counts `seq` itself: no row is ever deleted, so no
-- number is used twice and AUTOINCREMENT's second table is not needed. Where a rule of a person's deletes what was said in
-- a session, its rows lose the words and nothing else.
-- `session` is the session's number on this node; the row of kind SESSION_CREATED that carries a number for the
-- first time says in its body whose it is.
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
-- Proves that no event of a session is recorded twice.
CREATE UNIQUE INDEX log_event_session ON log_event(session, session_seq) WHERE session IS NOT NULL;
-- Whether anybody still needs a blob.
CREATE INDEX log_event_blob ON log_event(blob) WHERE blob IS NOT NULL;
