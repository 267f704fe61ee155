-- One row per kind of credential. `id` outlives a replaced token; only the hash of a token is ever stored.
CREATE TABLE credentials (
    kind         TEXT    PRIMARY KEY NOT NULL CHECK (kind IN ('approver', 'sidecar')),
    id           TEXT    NOT NULL UNIQUE,
    token_sha256 TEXT    NOT NULL CHECK (length(token_sha256) = 64),
    issued_at    INTEGER NOT NULL
) STRICT;

-- Times are Unix seconds. `seq` gives "newest first" an order that a clock set back cannot disturb.
CREATE TABLE reviews (
    seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
    id                  TEXT    NOT NULL UNIQUE,
    session             TEXT    NOT NULL,
    listener_name       TEXT    NOT NULL,
    approval_rule       TEXT    NOT NULL,
    statement           BLOB    NOT NULL,
    statement_sha256    TEXT    NOT NULL CHECK (length(statement_sha256) = 64),
    status              TEXT    NOT NULL CHECK (status IN
        ('PENDING', 'APPROVED', 'REJECTED', 'REVOKED', 'PROCESSING', 'EXECUTED', 'EXPIRED')),
    created_at          INTEGER NOT NULL,
    expires_at          INTEGER,
    approval_ttl_sec    INTEGER,
    decided_at          INTEGER,
    executed_at         INTEGER,
    rejection_reason    TEXT,
    requester_subject   TEXT,
    requester_email     TEXT,
    requester_peer_addr TEXT,
    requester_method    TEXT
) STRICT;

-- The promise that one statement has one live review, kept by the database and not by the code above it.
CREATE UNIQUE INDEX reviews_live ON reviews (listener_name, approval_rule, statement_sha256)
    WHERE status IN ('PENDING', 'APPROVED', 'PROCESSING');

-- "How often did this very statement run before?"
CREATE INDEX reviews_executed ON reviews (listener_name, approval_rule, statement_sha256, seq)
    WHERE status = 'EXECUTED';

CREATE TABLE review_groups (
    id         TEXT    PRIMARY KEY NOT NULL,
    review_seq INTEGER NOT NULL REFERENCES reviews (seq) ON DELETE CASCADE,
    position   INTEGER NOT NULL,
    group_name TEXT    NOT NULL,
    UNIQUE (review_seq, position)
) STRICT;
