"""What runs a job of the benchmark: a process each, which reads the topics and writes the rows."""
