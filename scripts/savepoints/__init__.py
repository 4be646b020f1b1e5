"""Savepoints for the command line: shown, imported and started from; what they have, and how they are taken, is in jobs/savepoints."""
