-- readable by schema: 17
-- `facts_version`: which facts and meanings of rows may be written. Software that reads less does not open the store.
INSERT INTO site (name, value) VALUES ('facts_version', '1');
