"""The pure core: it takes events and `now`, and returns facts and effects. No I/O, no clock, no randomness."""
