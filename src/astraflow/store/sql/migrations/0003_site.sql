-- What is true of all schedulers that share this store.
CREATE TABLE site (
    name {text} PRIMARY KEY,
    value {text} NOT NULL
){strict};
