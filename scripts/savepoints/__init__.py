"""Savepoints are taken, shown and deleted by people; the driver that starts from one is in jobs/savepoints."""
