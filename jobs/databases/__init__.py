"""Connections to databases: their secrets, PostgreSQL, and retries while a database is unavailable."""
