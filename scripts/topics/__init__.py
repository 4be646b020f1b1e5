"""``penstock topics``: plan and apply the topics of an environment's jobs."""
