"""The fleet: what is true of workers and of what they keep.

Six aggregates: workers, resources, install intents, rollouts, active versions and affinity keys. Each is one module
with its facts, one transition table, and `fold`, the only function that changes a record. Decisions are in `engine`;
rows and events are made from the facts.
"""
