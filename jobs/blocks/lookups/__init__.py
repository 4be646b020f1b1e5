"""Tables of databases that rows are looked up in; `penstock.jobs.blocks.joins.lookup_join` is the block."""
