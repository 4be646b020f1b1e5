"""The blocks of an app: joins, windows, keyed state, calls to external systems, lookups."""
