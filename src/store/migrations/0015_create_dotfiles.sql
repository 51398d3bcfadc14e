-- Files for the home directories of sessions, and scripts that run before a
-- session's program. Owners: a keypair (access key), a project (id), a domain (name).
CREATE TABLE dotfiles (
    kind       TEXT NOT NULL, -- keypair, project, domain; bootstrap: a keypair's script
    owner      TEXT NOT NULL,
    path       TEXT NOT NULL, -- of a script ''
    permission TEXT NOT NULL, -- three octal digits; of a script ''
    data       TEXT NOT NULL,
    PRIMARY KEY (kind, owner, path)
) WITHOUT ROWID;
