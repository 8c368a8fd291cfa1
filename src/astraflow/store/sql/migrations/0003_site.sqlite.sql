-- What is true of all schedulers that share this store.
CREATE TABLE site (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

PRAGMA user_version = 3;
