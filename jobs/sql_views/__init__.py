"""The streams of SQL: each statement maps to one of the blocks that a Python app calls."""
