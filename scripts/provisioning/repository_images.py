"""Deletion of a repository's images: ECR does not delete a repository that contains any."""

from __future__ import annotations

from penstock.scripts.provisioning.aws_access import AwsAccess, translated

# Source: Amazon ECR API reference, BatchDeleteImage: at most 100 images per request.
BATCH = 100


def empty(aws: AwsAccess, repository: str) -> int:
    """Delete all images.

    Args:
        aws: AWS of the environment.
        repository: the repository's name.

    Returns:
        The number of deleted tags and digests.

    Raises:
        PenstockError: TOOL-030, DEP-001, RUN-020 or RUN-021.
    """
    ecr = aws.client("ecr")
    with translated(f"repository {repository}"):
        pages = ecr.get_paginator("list_images").paginate(repositoryName=repository)
        images = [image for page in pages for image in page["imageIds"]]
        for start in range(0, len(images), BATCH):
            ecr.batch_delete_image(repositoryName=repository, imageIds=images[start : start + BATCH])
    return len(images)
