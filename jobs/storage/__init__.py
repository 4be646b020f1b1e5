"""S3 and the checkpoint."""
