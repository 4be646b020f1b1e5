"""Ad-hoc SQL over the topics of jobs: ``penstock sql``."""
