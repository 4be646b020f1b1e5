"""What a change of a repository means for the jobs of an environment, before it is merged."""
