"""A team's own repository that has Penstock as a dependency: what ``penstock init`` asks and writes."""
