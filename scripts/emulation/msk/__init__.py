"""MSK: provisioned and serverless clusters, configurations and cluster policies. The broker, if any, runs on this machine."""
