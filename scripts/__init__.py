"""Scripts: the ``penstock`` command and what runs the jobs, the emulated AWS and the broker. Nobody imports it."""
