-- Where a user logs in: the URL of an OpenID Connect issuer; empty: here, with a password. Users of an issuer from before
-- have no password and no issuer, until they log in again.
ALTER TABLE users ADD COLUMN issuer {text} NOT NULL DEFAULT '';
