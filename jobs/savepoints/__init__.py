"""Savepoints of a job: copies of its checkpoint as of a micro-batch, kept until they are deleted, and checkpoints that begin with one."""
