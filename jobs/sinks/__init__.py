"""Sinks: where a job's rows go, and what each of them promises."""
