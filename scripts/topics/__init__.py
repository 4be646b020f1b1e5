"""``penstock topics``: the topics of an environment's jobs, shown as a plan and then made so on the brokers."""
