"""Tables of databases that rows are looked up in; `jobs.joins.lookup_join` is the block."""
