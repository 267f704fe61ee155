-- What a sidecar last said of itself. Nothing is decided by it. Capabilities are separated by commas.
CREATE TABLE sidecars (
    id               TEXT    PRIMARY KEY NOT NULL REFERENCES credentials (id),
    last_seen        INTEGER NOT NULL,
    version          TEXT    NOT NULL,
    applied_revision TEXT,
    last_outcome     TEXT,
    last_error       TEXT,
    capabilities     TEXT    NOT NULL
) STRICT;
