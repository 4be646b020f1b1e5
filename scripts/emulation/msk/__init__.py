"""MSK: provisioned and serverless clusters, configurations, topics and cluster policies. The broker, if any, runs on this machine."""
