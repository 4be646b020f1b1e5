"""Real servers for the connections of a local job: PostgreSQL, Redis, an HTTP endpoint and a socket."""
