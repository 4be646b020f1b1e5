"""MSK: clusters of both kinds, configurations and cluster policies. The brokers behind it, if any, are one that runs on this machine."""
