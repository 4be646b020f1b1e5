"""Dependencies that are not Python packages: downloaded from locks, once, into the user's cache."""
