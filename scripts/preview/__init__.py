"""A changed job beside the one that runs: both over the same offsets, from a copy of the state, and nothing outside is written."""
