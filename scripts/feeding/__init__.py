"""``penstock feed``: writes events to the topics of a job at a steady rate."""
