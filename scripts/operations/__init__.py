"""Deployed jobs in operation: what their folders on S3 tell of them."""
