-- As in a new database, where nobody has chosen a limit. Policies that administrators made stay as
-- they are: 0 = no limit.
UPDATE keypair_policies SET max_pending_sessions = 100000
    WHERE name = 'default' AND max_pending_sessions <= 0;
