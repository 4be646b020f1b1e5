"""State of joins and aggregations: stores, the memory they take, and what their checkpoints write."""
