"""What a new repository is made of: asked for, or given as options."""

from __future__ import annotations

import keyword
import re
import sys
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from penstock.infra.address_plan import MAX_ZONES
from penstock.infra.parts.eks import VERSION_PATTERN
from penstock.infra.parts.existing_cluster import ExistingCluster
from penstock.infra.parts.network import MIN_ZONES, ExistingNetwork
from penstock.infra.regions import known_region

# PyPA's "Names and normalization", without what a Python package and an environment's resources can't have.
NAME_PATTERN = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
ACCOUNT_PATTERN = r"[0-9]{12}"
# Folders of the repository, and what would hide a package of the kit or of its dependencies.
_TAKEN = {"penstock", "pyspark", "cdktf", "constructs", "boto3", "pytest", "environments", "specs", "tests"}
# Names of buckets have at most 63 characters: <name>-production-checkpoints-<account>.
_LONGEST_NAME = 27

Kafka = Literal["standard", "express", "serverless"]


def package_of(name: str) -> str:
    """The Python package of a repository of that name."""
    return name.replace("-", "_")


def usable_name(name: str) -> str:
    """Validates the name of a repository, which is also that of its package.

    Raises:
        ValueError: it can't be one.
    """
    if not re.fullmatch(NAME_PATTERN, name):
        raise ValueError("lower-case letters, digits and single hyphens, beginning with a letter, such as page-views")
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"at most {_LONGEST_NAME} characters: names of buckets begin with it")
    package = package_of(name)
    if keyword.iskeyword(package) or package in sys.stdlib_module_names or package in _TAKEN:
        raise ValueError(f"a name whose package, {package}, is not a module or a word of Python or of the kit")
    return name


def account_id(text: str) -> str:
    """Validates the id of an AWS account.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch(ACCOUNT_PATTERN, text):
        raise ValueError("the 12 digits of an AWS account")
    return text


def usable_network(existing: ExistingNetwork) -> ExistingNetwork:
    """Validates that a VPC has as many private subnets as an environment has zones.

    Raises:
        ValueError: it has too few or too many.
    """
    if not MIN_ZONES <= len(existing.private_subnet_ids) <= MAX_ZONES:
        raise ValueError(f"{MIN_ZONES} to {MAX_ZONES} private subnets, one in each of the zones a, b, ...")
    return existing


class Answers(BaseModel):
    """What a repository is made with.

    Args:
        name: of the repository, the distribution and, with underscores, of the package; begins the names of buckets.
        account: AWS account of the environments dev and production.
        region: their region.
        kafka: kind of their MSK cluster.
        existing: a VPC that both use; None: each gets a new one.
        cluster: an EKS cluster in that VPC, which production runs in; None: it gets a new one. Dev always does, because a cluster has room
            for one environment.
        cluster_version: Kubernetes version of that cluster; None: that of a new one.
    """

    model_config = ConfigDict(frozen=True)

    name: Annotated[str, AfterValidator(usable_name)]
    account: Annotated[str, AfterValidator(account_id)]
    region: Annotated[str, AfterValidator(known_region)]
    kafka: Kafka = "serverless"
    existing: Annotated[ExistingNetwork, AfterValidator(usable_network)] | None = None
    cluster: ExistingCluster | None = None
    cluster_version: Annotated[str, Field(pattern=VERSION_PATTERN)] | None = None

    @field_validator("cluster")
    @classmethod
    def _in_its_network(cls, cluster: ExistingCluster | None, info: ValidationInfo) -> ExistingCluster | None:
        # A VPC that is wrong has its own error.
        if cluster is not None and "existing" in info.data and info.data["existing"] is None:
            raise ValueError("an existing VPC, that of the cluster: nodes in a new one can't join it")
        return cluster

    @property
    def package(self) -> str:
        """The Python package."""
        return package_of(self.name)
