"""What a driver is started with: the runtime configuration, and how its brokers are reached. Needs no Spark."""
