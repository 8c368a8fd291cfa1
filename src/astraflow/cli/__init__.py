"""The command line: words for people and scripts, and no logic of its own."""
