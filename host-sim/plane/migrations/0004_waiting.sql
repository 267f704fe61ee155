-- Whom a review counts against while it waits: `requester::caller` says how it is read from the requester.
ALTER TABLE reviews ADD COLUMN caller TEXT NOT NULL DEFAULT 'anonymous';

UPDATE reviews SET caller = CASE
        WHEN requester_subject <> '' THEN 'subject:' || requester_method || ':' || requester_subject
        WHEN requester_email <> '' THEN 'email:' || requester_method || ':' || requester_email
        WHEN requester_peer_addr GLOB '[[]*]:[0-9]*' OR requester_peer_addr GLOB '*.*.*.*:[0-9]*'
            THEN 'peer:' || trim(rtrim(rtrim(requester_peer_addr, '0123456789'), ':'), '[]')
        WHEN requester_peer_addr <> '' THEN 'peer:' || requester_peer_addr
        ELSE 'anonymous'
    END
    WHERE status = 'PENDING';

-- "How many wait?", of one caller and in all. Lapsed rows stay PENDING until the same statement is filed again, so the
-- deadline comes last: they are skipped and not walked through.
CREATE INDEX reviews_waiting_of_caller ON reviews (caller, expires_at) WHERE status = 'PENDING';
CREATE INDEX reviews_waiting ON reviews (expires_at) WHERE status = 'PENDING';
