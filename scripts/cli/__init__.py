"""The ``penstock`` command: one module per verb."""
