"""Texts as vectors, by a model that stays warm where it was loaded."""
