"""Clients of Kafka: security settings, the brokers, committed offsets."""
