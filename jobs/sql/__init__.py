"""Apps in SQL: statements in a file beside the spec, made of the same blocks as an app in Python."""
