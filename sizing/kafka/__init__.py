"""Kafka on MSK: partitions of topics, brokers for a load, and what a micro-batch reads of a backlog."""
