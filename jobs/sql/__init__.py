"""Apps in SQL: statements in a file next to the spec, built from the same blocks as an app in Python."""
