"""A stream: its rows, event time and watermarks, side outputs and quarantine."""
