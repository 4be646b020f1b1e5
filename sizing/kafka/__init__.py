"""Kafka on MSK: partitions of topics, brokers for a load, and how a micro-batch reads a backlog."""
