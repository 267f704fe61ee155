-- No version before this one wrote PROCESSING. Should a row say so all the same, then in doubt it has run.
UPDATE reviews SET status = 'EXECUTED', executed_at = coalesce(executed_at, decided_at, created_at)
    WHERE status = 'PROCESSING';

-- Which release the row's last PROCESSING belongs to, so that a late word about an earlier one changes nothing.
ALTER TABLE reviews ADD COLUMN release_id TEXT;

-- Unix seconds. Until then a PROCESSING row may be settled; from then on it is spent.
ALTER TABLE reviews ADD COLUMN settle_by INTEGER
    CHECK (status <> 'PROCESSING' OR (settle_by IS NOT NULL AND release_id IS NOT NULL));

-- Gates list once a second. These are all columns of a list, so that it never walks through the statements, which stand
-- before most of them in the table.
CREATE INDEX reviews_listed ON reviews (seq, id, session, listener_name, approval_rule, status, created_at, expires_at,
    approval_ttl_sec, decided_at, executed_at, rejection_reason, release_id, settle_by);

-- "The newest of this status", both deadlines at hand.
CREATE INDEX reviews_by_status ON reviews (status, seq, expires_at, settle_by);
