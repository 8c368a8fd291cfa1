"""The codes of errors of stores, of backups, and of schedulers that share a store (see `errors`)."""

from __future__ import annotations

from astraflow.core.error_kinds import again, final

# fmt: off

STORE_UNAVAILABLE = again("E.STORE.UNAVAILABLE", 503,
    "the store does not answer, or cannot say whether it committed",
    "try again with the same idempotency key")
STORE_FULL = again("E.STORE.FULL", 507,
    "there is no room left where the store writes; nothing was written",
    "free space on the disk or shorten the retention, then try again")
STORE_REFUSED = final("E.STORE.REFUSED", 422,
    "the rows cannot be stored: their content is not allowed, or they contradict what is stored",
    "leave out U+0000, lone surrogates and integers beyond 64 bits; nothing was written")
STORE_BROKEN = final("E.STORE.BROKEN", 503,
    "the store failed in a way after which it must not be written to",
    "look at the disk and its logs, then start again; the last writes are read back then")
STORE_CORRUPT = final("E.STORE.CORRUPT", 500,
    "the store's file is damaged",
    "keep a copy of the file, and restore a backup")
STORE_FOREIGN = final("E.STORE.FOREIGN", 500,
    "the file or the database belongs to another program, or is no database at all",
    "name another file or an empty database; nothing was changed")
STORE_LOCKED = final("E.STORE.LOCKED", 503,
    "another scheduler has the store open",
    "stop the process that the message names, or use another data folder")
STORE_NEWER = final("E.STORE.NEWER", 500,
    "a newer version of AstraFlow wrote the store",
    "use that version or a newer one; nothing was changed")
STORE_READ_ONLY = final("E.STORE.READ_ONLY", 500,
    "the store's file or its folder cannot be opened for writing",
    "check that the folder exists and belongs to the user that runs the scheduler")
STORE_POOLER = final("E.STORE.POOLER", 500,
    "a connection pooler stands between this program and PostgreSQL",
    "let database_url name the PostgreSQL server itself; AstraFlow keeps a handful of connections and needs no pooler")
STORE_FENCED = final("E.STORE.FENCED", 503,
    "a newer owner of this shard has taken over",
    "nothing; this process stops serving the shard")
STORE_NOT_EMPTY = final("E.STORE.NOT_EMPTY", 409,
    "the store holds something already",
    "restore into an empty store, or give --replace to delete what is there; nothing was changed")
BACKUP_INVALID = final("E.BACKUP.INVALID", 422,
    "the file is not a whole backup, or has been altered",
    "use another backup; nothing was changed")
BACKUP_NEWER = final("E.BACKUP.NEWER", 422,
    "a newer version of AstraFlow wrote the backup",
    "use that version or a newer one; nothing was changed")
BACKUP_LANES = final("E.BACKUP.LANES", 409,
    "a tenant of the backup has several lanes, and SQLite has room for one",
    "restore it into a PostgreSQL database, with --database-url; nothing was changed")
BACKUP_UNWRITABLE = final("E.BACKUP.UNWRITABLE", 500,
    "the backup cannot be written",
    "check that the folder exists, belongs to this user and has room; no file was left")
BLOBS_FOREIGN = final("E.BLOBS.FOREIGN", 500,
    "the place for blobs is not the one that the other schedulers of this database use",
    "set blobs_url to one shared folder or bucket, the same for every scheduler of this database")
NODE_FOREIGN = final("E.NODE.FOREIGN", 500,
    "the other schedulers of this database have another secret",
    "set secret to the same for every scheduler of this database; to change it, see the guide on users and tokens")
NODE_OLDER = again("E.NODE.OLDER", 409,
    "schedulers of the release before share the store, and could not read what is to be written",
    "upgrade or stop those that the message names, then try again; one that was killed counts for a minute")
SHARD_MOVED = again("E.SHARD.MOVED", 421,
    "another scheduler owns the tenant of the request; nothing was done",
    "nothing: the scheduler that passed the request on looks for the owner again")
SHARD_UNREACHABLE = again("E.SHARD.UNREACHABLE", 503,
    "the scheduler that owns the tenant of the request does not answer; what changes something may have been done",
    "try again after Retry-After, with the same Idempotency-Key")
SHARD_NOT_MOVED = final("E.SHARD.NOT_MOVED", 409,
    "there is no such shard, or no such scheduler",
    "see the shards with tenants and the schedulers that live, with `astra db nodes`")
SHARD_NOT_PARKED = final("E.SHARD.NOT_PARKED", 409,
    "the shard is neither parked nor withheld",
    "see which shards are, with `astra db nodes`")

# fmt: on
