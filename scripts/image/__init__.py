"""The image of the jobs on base images that are assembled from packages, for machines that reach no image registry."""
