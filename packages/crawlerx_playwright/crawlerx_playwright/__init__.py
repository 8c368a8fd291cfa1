"""Browser sessions as resources: open a page, act on it, read it, close it."""
