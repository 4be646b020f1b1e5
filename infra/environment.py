"""The environment: the target of the stacks of a platform team, as one YAML document.

Strict and frozen, like the job spec: all faults of a document are reported at once, each with its line. Fields are camelCase in YAML and
snake_case here. `penstock.infra.environment_file` locates and reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from penstock.infra.parts.connections import Connection
from penstock.infra.parts.eks import Eks
from penstock.infra.parts.endpoints import Endpoints
from penstock.infra.parts.existing_cluster import ExistingCluster
from penstock.infra.parts.jobs import EnvironmentJob, JobEntry
from penstock.infra.parts.kafka import Kafka
from penstock.infra.parts.mirrors import Mirrors
from penstock.infra.parts.network import Network
from penstock.infra.parts.nodes import NODE_CLASS, Nodes
from penstock.infra.parts.observability import MonthlyBudget, Observability
from penstock.infra.parts.part import Part
from penstock.infra.parts.quotas import Quotas
from penstock.infra.parts.sessions import Session
from penstock.infra.regions import known_region
from penstock.jobs.document import Document, Path_, dotted
from penstock.jobs.spec import Name
from penstock.sizing.errors import PenstockError

Error = TypeVar("Error", bound=PenstockError)

# Part of resource names, the shortest limit of which is an IAM role's 64 characters.
NAME_PATTERN = r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$"
# Source: the region patterns of AWS's partitions (botocore/data/partitions.json).
REGION_PATTERN = r"^(af|ap|ca|cn|eu|eusc|il|me|mx|sa|us)(-gov|-iso[a-z]?)?-[a-z]+-[1-9][0-9]?$"
# Source: OCI distribution specification, "Pulling manifests": a tag.
IMAGE_TAG_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$"
# Source: IAM User Guide, "IAM identifiers": a policy of the account, or one of AWS, with the path before its name.
POLICY_ARN_PATTERN = r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/([\x21-\x7e]+/)?[A-Za-z0-9_+=,.@-]{1,128}$"
# Source: Amazon S3 User Guide, "General purpose bucket naming rules".
RESERVED_BUCKET_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
RESERVED_BUCKET_SUFFIXES = ("-s3alias", "--ol-s3", "--x-s3", "--table-s3", "-an")
# Source: AWS Tagging Best Practices, "Tag naming limits and requirements"; the stacks add up to 10 tags, and a resource has at most 50.
TAG_KEY_PATTERN = re.compile(r"[\w .:/=+\-@]{1,128}")
TAG_VALUE_PATTERN = re.compile(r"[\w .:/=+\-@]{0,256}")
TAG_CHARACTERS = "letters, digits, spaces and . : / = + - @ _"
MAX_TAGS = 40


def _bucket(name: str) -> str:
    """A bucket name by S3's rules, but without dots: the certificate of S3's endpoint does not cover names with dots."""
    if not 3 <= len(name) <= 63:
        raise ValueError(f"a bucket name of 3 to 63 characters; this one has {len(name)}")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*[a-z0-9]", name):
        raise ValueError("a bucket name of lower-case letters, digits and hyphens that starts and ends with a letter or digit")
    if name.startswith(RESERVED_BUCKET_PREFIXES) or name.endswith(RESERVED_BUCKET_SUFFIXES):
        reserved = ", ".join((*(f"{start}..." for start in RESERVED_BUCKET_PREFIXES), *(f"...{end}" for end in RESERVED_BUCKET_SUFFIXES)))
        raise ValueError(f"a bucket name that is not reserved by S3 ({reserved})")
    return name


def _account(value: object) -> object:
    """YAML reads digits as a number, and drops or misreads leading zeros."""
    if isinstance(value, int):
        # A ValueError, because pydantic handles no other type: it becomes SPEC-006 with its line.
        raise ValueError('12 digits in quotes, such as "012345678901"')
    return value


def _tags(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > MAX_TAGS:
        raise ValueError(f"at most {MAX_TAGS} tags; {len(tags)} are given")
    for key, value in tags.items():
        if not TAG_KEY_PATTERN.fullmatch(key) or key.lower().startswith("aws:"):
            raise ValueError(f'a tag key of 1 to 128 {TAG_CHARACTERS} that does not start with aws:, not "{key}"')
        if not TAG_VALUE_PATTERN.fullmatch(value):
            raise ValueError(f"a tag value of at most 256 {TAG_CHARACTERS}; {key} has another value")
    return tags


def _jobs_once(jobs: list[EnvironmentJob]) -> list[EnvironmentJob]:
    _each_once([job.spec for job in jobs])
    return jobs


def _each_once(paths: list[str]) -> list[str]:
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise ValueError(f"each spec once; duplicate: {', '.join(twice)}")
    return paths


BucketName = Annotated[str, AfterValidator(_bucket)]
ImageTag = Annotated[str, Field(pattern=IMAGE_TAG_PATTERN)]


class Metadata(Part):
    """Names the environment."""

    name: Annotated[str, Field(pattern=NAME_PATTERN)]


class Buckets(Part):
    """The buckets that the stacks create; bucket names are unique in all of AWS.

    Args:
        checkpoints: for checkpoints and savepoints.
        output: for the jobs' output.
        access_logs: for the access logs of the other two; None: a name made of the account, the region and the environment.
    """

    checkpoints: BucketName
    output: BucketName
    access_logs: BucketName | None = None

    @model_validator(mode="after")
    def _two(self) -> Self:
        if self.checkpoints == self.output:
            raise ValueError("different buckets: checkpoint objects expire, output objects do not")
        if self.access_logs in (self.checkpoints, self.output):
            raise ValueError("a separate bucket for the access logs: otherwise their delivery would be logged as well")
        return self


class State(Part):
    """The location of Terraform's state.

    Args:
        bucket: of the states, one object per stack, with a lock object next to it while a command runs; `penstock bootstrap` creates it.
    """

    bucket: BucketName


class Registry(Part):
    """The registry of the jobs' image.

    Args:
        keep_images: number of the newest images to keep.
        image_tag: of the image that the jobs run; PENSTOCK_IMAGE_TAG overrides it, for a pipeline that has just built one.
        image_tags: job -> tag, for jobs that are released apart from the others.
    """

    keep_images: Annotated[int, Field(ge=1, le=1000)] = 30
    image_tag: ImageTag = "0.1.0"
    image_tags: dict[Name, ImageTag] = {}


class EnvironmentSpec(Part):
    """The settings of the stacks.

    Args:
        account: the AWS account's 12 digits; a deploy with credentials of another account is rejected.
        region: the AWS region.
        protect: whether Terraform refuses to destroy buckets and keys when a stack is destroyed or a bucket renamed.
        buckets: the buckets' names.
        state: Terraform's state in S3; None: in local files, for a single user.
        endpoints: of an emulated AWS; None: AWS itself.
        tags: on every resource.
        network: the VPC; None if the environment has no cluster.
        eks: the Kubernetes cluster; None: the jobs run on one machine.
        nodes: that Karpenter may start.
        kafka: the brokers; None if they are not part of the environment.
        connections: name -> database or endpoint, as the jobs' specs refer to them; a job gets those that its spec names.
        mirrors: registry -> its mirror, for images and charts of others.
        permissions_boundary: ARN of the managed policy that limits every role of the stacks; None: none does.
        registry: of the jobs' image.
        jobs: the jobs that run here, as paths of their specs relative to the environment file, or with a parallelism of their own here;
            the stacks are sized for them.
        sessions: jobs that share a driver and executors; every other job has its own.
        app_path: folders in which the jobs' apps are looked up besides those of their specs, relative to the environment file.
        observability: logs, metrics and alarms.
        budget: monthly AWS costs; None: no budget.
        quotas: of the account.
        catalog: a snapshot of instance types and prices written by `penstock catalog refresh`, relative to the environment file; None:
            the
            shipped one of the region.
        prices: a file of the region's other prices, relative to the environment file, in the format of the shipped ones; None: the
            shipped
            ones of the region, or, if there are none, a bill of the instances alone.
    """

    account: Annotated[str, BeforeValidator(_account), Field(pattern=r"^[0-9]{12}$")]
    region: Annotated[str, Field(pattern=REGION_PATTERN), AfterValidator(known_region)]
    protect: bool
    buckets: Buckets
    state: State | None = None
    endpoints: Endpoints | None = None
    tags: Annotated[dict[str, str], AfterValidator(_tags)] = {}
    network: Network | None = None
    eks: Eks | None = None
    nodes: Nodes | None = None
    kafka: Kafka | None = None
    connections: dict[Name, Connection] = {}
    mirrors: Mirrors = {}
    permissions_boundary: Annotated[str, Field(pattern=POLICY_ARN_PATTERN)] | None = None
    registry: Registry = Registry()
    jobs: Annotated[list[JobEntry], AfterValidator(_jobs_once)] = []
    sessions: list[Session] = []
    app_path: Annotated[list[str], AfterValidator(_each_once)] = []
    observability: Observability = Observability()
    budget: MonthlyBudget | None = None
    quotas: Quotas = Quotas()
    catalog: str | None = None
    prices: str | None = None

    @property
    def job_paths(self) -> list[Path]:
        """The paths of the jobs' specs."""
        return [Path(job.spec) for job in self.jobs]

    @model_validator(mode="after")
    def _whole_cluster(self) -> Self:
        parts = {"network": self.network, "eks": self.eks, "nodes": self.nodes}
        missing = [name for name, part in parts.items() if part is None]
        if missing and len(missing) < len(parts):
            raise ValueError(f"all of network, eks and nodes, or none of them; missing: {' and '.join(missing)}")
        return self

    @field_validator("eks")
    @classmethod
    def _in_its_network(cls, eks: Eks | None, info: ValidationInfo) -> Eks | None:
        network = info.data.get("network")
        if eks is not None and eks.existing is not None and network is not None and network.existing is None:
            raise ValueError("network.existing, the VPC of the existing cluster: nodes in a new VPC can't join it")
        return eks

    @field_validator("network")
    @classmethod
    def _zones_of_the_region(cls, network: Network | None, info: ValidationInfo) -> Network | None:
        """A zone is its region and one letter; a Local Zone has a longer name, and no EKS control plane."""
        region = info.data.get("region")
        strange = [zone for zone in (network.zones if network and region else []) if zone[:-1] != region]
        if strange:
            raise ValueError(f"zones of {region}; not in this region: {', '.join(strange)}")
        return network


class Environment(Part):
    """An environment file.

    Equality compares contents, not the source document.
    """

    api_version: Literal["penstock/v1"]
    kind: Literal["Environment"]
    metadata: Metadata
    spec: EnvironmentSpec

    _document: Document | None = PrivateAttr(default=None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Environment) and dict(self) == dict(other)

    @property
    def document(self) -> Document | None:
        """The source document; None for an environment built by a program."""
        return self._document

    def of_document(self, document: Document | None) -> Environment:
        """This environment with its source document, whose lines later errors name."""
        copied = self.model_copy()
        copied._document = document
        return copied

    def with_spec(self, **changes: Any) -> Environment:
        """A copy with other values in its spec, which are not validated again."""
        return self.model_copy(update={"spec": self.spec.model_copy(update=changes)})

    def locate(self, error: Error, *path: str | int) -> Error:
        """Sets the place of a field in the environment's file on an error, and its path and value if the error has none.

        Args:
            error: the error to locate.
            path: path of the field in the document: ``"spec", "kafka", "brokers"``.
        """
        field: Path_ = path
        if self._document is not None:
            self._document.locate(error, field)
        error.path = error.path or dotted(field)
        return error

    @property
    def name(self) -> str:
        """The environment's name."""
        return self.metadata.name

    @property
    def prefix(self) -> str:
        """Prefix of its resource names."""
        return f"penstock-{self.name}"

    @property
    def existing_cluster(self) -> ExistingCluster | None:
        """The cluster that a team has already; None if the stacks create one, or there is none."""
        return self.spec.eks.existing if self.spec.eks is not None else None

    @property
    def cluster_name(self) -> str:
        """Name of its EKS cluster."""
        return self.existing_cluster.name if self.existing_cluster is not None else self.prefix

    @property
    def own_karpenter(self) -> bool:
        """Whether the stacks install Karpenter: there is a cluster, and it has none."""
        return self.spec.eks is not None and (self.existing_cluster is None or self.existing_cluster.karpenter == "create")

    @property
    def node_class(self) -> str:
        """Name of its EC2NodeClass; an existing cluster may have a default one of its own."""
        return self.prefix if self.existing_cluster is not None else NODE_CLASS

    def release(self, chart: str) -> str:
        """Name of a Helm release besides those of its jobs; an existing cluster may have releases of the same charts.

        Args:
            chart: what it releases, at most 11 characters, so that the name fits Helm's 53.
        """
        return f"{self.prefix}-{chart}" if self.existing_cluster is not None else chart

    def at(self, endpoint: str, services: Mapping[str, str] | None = None) -> Environment:
        """A copy of this environment with all services at an emulated AWS.

        Args:
            endpoint: a URL, such as ``http://127.0.0.1:4566``.
            services: service -> URL, for services emulated elsewhere.
        """
        data = self.model_dump(by_alias=True, exclude_none=True)
        data["spec"]["endpoints"] = {"aws": endpoint, "services": dict(services or {})}
        return Environment.model_validate(data).of_document(self._document)

    def text(self) -> str:
        """The environment as YAML that `penstock.infra.environment_file.load` reads back."""
        data: dict[str, Any] = self.model_dump(by_alias=True, exclude_none=True)
        return yaml.safe_dump(data, sort_keys=False)
