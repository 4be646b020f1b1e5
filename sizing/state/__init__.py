"""State of joins and aggregations: state stores, their memory, and the writes of their checkpoints."""
