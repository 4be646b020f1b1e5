"""The blocks that an app is built of: joins, windows, keyed state, calls of other systems, lookups."""
