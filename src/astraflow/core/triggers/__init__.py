"""Triggers: what starts runs of saved workflows, at which times and for which events.

One aggregate. `record` has its facts, the transition table and `fold`, the only function that changes a record;
`decisions` makes facts of what is wanted and of the time; `fires` says what a fire is, its key and its inputs.
"""
