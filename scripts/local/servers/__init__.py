"""Real servers that stand on this machine for the connections of a job: PostgreSQL, Redis, an HTTP endpoint and a socket."""
