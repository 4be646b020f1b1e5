"""The ``penstock`` command: one module a verb."""
