"""Lookup tables in databases; `penstock.jobs.blocks.joins.lookup_join` is the block."""
