"""The permissions of a job on AWS: read and write in its own folders, and use its own topics and consumer groups. Nothing else.

Source: AWS Service Authorization Reference for Amazon S3, AWS KMS and Apache Kafka APIs for Amazon MSK clusters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.infra.job_folders import foreign, output_folders
from penstock.infra.policies import Condition, Statement, allow
from penstock.jobs.spec import SpecFile

# Metacharacters of a regular expression: up to the first of them, a topic pattern is plain text.
_SIGNS = re.compile(r"[\\.^$*+?{}\[\]|()]")


@dataclass(frozen=True)
class Buckets:
    """The buckets of the jobs.

    Args:
        checkpoints_arn: of the bucket of the checkpoints.
        output_arn: of the bucket of the output.
        output: its name, by which a spec may name it too.
        key_arn: of the KMS key of both.
        service: S3 in this region as KMS names it, ``s3.us-east-1.amazonaws.com``.
    """

    checkpoints_arn: str
    output_arn: str
    output: str
    key_arn: str
    service: str


@dataclass(frozen=True)
class Brokers:
    """A cluster that authenticates its clients by IAM.

    Args:
        cluster_arn: of the cluster.
        topics_arn: prefix of the ARNs of its topics.
        groups_arn: prefix of the ARNs of its consumer groups.
        transactions_arn: prefix of the ARNs of its transactional ids.
    """

    cluster_arn: str
    topics_arn: str
    groups_arn: str
    transactions_arn: str


def statements(
    job: SpecFile, buckets: Buckets, brokers: Brokers | None, secrets: Mapping[str, str | None] | None = None
) -> list[Statement]:
    """The statements of a job's role.

    Args:
        job: its spec.
        buckets: where it stores checkpoints and output.
        brokers: None if they do not use IAM.
        secrets: ARN of each secret that it reads -> ARN of its KMS key, None for AWS's own; None: it reads none.
    """
    kept = [*_checkpoints(job, buckets), *_initial_savepoint(job, buckets), *_input(job, buckets), *_output(job, buckets)]
    return [*kept, _key(job, buckets), *(_kafka(job, brokers) if brokers else ()), *_secrets(secrets or {})]


def union(each: Sequence[Sequence[Statement]]) -> list[Statement]:
    """The statements of the role of a session: those of all its jobs, each once, with ids that are unique.

    Args:
        each: statements of each job.
    """
    united: list[Statement] = []
    without_id: list[Statement] = []
    used: set[str] = set()
    for number, of_job in enumerate(each, 1):
        for statement in of_job:
            rest = {name: value for name, value in statement.items() if name != "Sid"}
            if rest in without_id:
                continue
            without_id.append(rest)
            sid = statement["Sid"] if statement["Sid"] not in used else f"{statement['Sid']}OfJob{number}"
            used.add(sid)
            united.append({**statement, "Sid": sid})
    return united


def _checkpoints(job: SpecFile, buckets: Buckets) -> list[Statement]:
    folder = job.job.metadata.name
    return [
        _list("ListOwnCheckpoints", buckets.checkpoints_arn, [folder]),
        # Checkpoints, savepoints and Penstock's own records. Spark and s3a delete and replace files that they have written.
        allow(
            "UseOwnCheckpoints",
            ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
            [f"{buckets.checkpoints_arn}/{folder}/*"],
        ),
    ]


def _initial_savepoint(job: SpecFile, buckets: Buckets) -> list[Statement]:
    """A savepoint of another job, or in another bucket, whose key's policy must then allow the job's role."""
    path = job.job.spec.initial_savepoint_path
    if path is None:
        return []
    bucket, _, folder = path.partition("://")[2].partition("/")
    arn = _bucket_arn(bucket, buckets)
    return [
        _list("ListInitialSavepoint", arn, [folder]),
        allow("ReadInitialSavepoint", ["s3:GetObject"], [f"{arn}/{folder}/*"]),
    ]


def _input(job: SpecFile, buckets: Buckets) -> list[Statement]:
    """Files that the job reads. For a bucket with another key, that key's policy must allow the job's role.

    Spark asks first what the path itself is, with HEAD of an object of that name; where there is none, S3 says so only to those who may
    list that prefix, and denies the request to others.
    Source: Amazon S3 API Reference, HeadObject, "Permissions"; the requests of Spark's file source and S3A, recorded 2026-11-27.
    """
    folders: dict[str, list[str]] = {}
    for source in job.job.spec.file_sources.values():
        folders.setdefault(_bucket_arn(source.bucket, buckets), []).append(source.path)
    lists = [
        _list_prefixes(f"ListInput{number}", arn, _with_all_below(paths)) for number, (arn, paths) in enumerate(sorted(folders.items()), 1)
    ]
    objects = [f"{arn}/{path}" for arn, paths in sorted(folders.items()) for path in _with_all_below(paths)]
    return [*lists, allow("ReadInput", ["s3:GetObject"], objects)] if objects else []


def _bucket_arn(name: str | None, buckets: Buckets) -> str:
    if foreign(name, buckets.output) is None:
        return buckets.output_arn
    return f"arn:{buckets.output_arn.split(':')[1]}:s3:::{name}"


def _output(job: SpecFile, buckets: Buckets) -> list[Statement]:
    """Files that the job writes. For a bucket with another key, that key's policy must allow the job's role."""
    folders: dict[str, list[str]] = {}
    for bucket, folder in output_folders(job, buckets.output):
        folders.setdefault(_bucket_arn(bucket, buckets), []).append(folder)
    if not folders:
        return []
    return [
        *(_list(f"ListOwnOutput{number}", arn, paths) for number, (arn, paths) in enumerate(folders.items(), 1)),
        # This action has no condition on a folder. It lists the names of others' uploads in progress, and grants no access to them.
        allow("ListUnfinishedUploads", ["s3:ListBucketMultipartUploads"], list(folders)),
        # No DeleteObject: published files are permanent.
        allow(
            "WriteOwnOutput",
            ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"],
            [f"{arn}/{folder}/*" for arn, paths in folders.items() for folder in paths],
        ),
    ]


def _list(sid: str, bucket_arn: str, folders: Sequence[str]) -> Statement:
    return _list_prefixes(sid, bucket_arn, [f"{folder}/*" for folder in folders])


def _list_prefixes(sid: str, bucket_arn: str, prefixes: Sequence[str]) -> Statement:
    return allow(sid, ["s3:ListBucket"], [bucket_arn], {"StringLike": {"s3:prefix": [*prefixes]}})


def _with_all_below(paths: Sequence[str]) -> list[str]:
    return [name for path in sorted(set(paths)) for name in (path, f"{path}/*")]


def _key(job: SpecFile, buckets: Buckets) -> Statement:
    """Only through S3 and for these buckets. The encryption context is the bucket's ARN if it has a bucket key, else the object's."""
    read = [foreign(source.bucket, buckets.output) for source in job.job.spec.file_sources.values()]
    written = [bucket for bucket, _ in output_folders(job, buckets.output)]
    arns = [buckets.checkpoints_arn, *([buckets.output_arn] if None in (*read, *written) else [])]
    condition: Condition = {
        "StringEquals": {"kms:ViaService": buckets.service},
        "StringLike": {"kms:EncryptionContext:aws:s3:arn": [context for arn in arns for context in (arn, f"{arn}/*")]},
    }
    return allow("UseKeyByS3", ["kms:Decrypt", "kms:GenerateDataKey"], [buckets.key_arn], condition)


def _kafka(job: SpecFile, brokers: Brokers) -> list[Statement]:
    spec = job.job.spec
    own = f"penstock.{job.job.metadata.name}"
    kafka = list(spec.kafka_sources.values())
    patterns = {f"{_SIGNS.split(source.pattern)[0]}*" for source in kafka if source.pattern is not None}
    read = sorted({*job.job.read_topics(), *patterns})
    # Consumer groups of Spark's readers, this prefix and a random suffix; they commit nothing. The default is below the job's own name.
    readers = {f"{source.group_id_prefix}-*" for source in kafka if source.group_id_prefix is not None}
    # Groups that a source names as its own: its readers name them, and the job may commit to them.
    named = {source.group_id for source in kafka if source.group_id is not None}
    # Their offsets are where the job starts; it commits none to them.
    followed = sorted({source.starting_group for source in kafka if source.starting_group is not None} - named)
    written = sorted({sink.topic for sink in spec.kafka_sinks.values()})
    marked = sorted({sink.topic for sink in spec.kafka_sinks.values() if sink.guarantee == "exactly-once"})
    # How long the brokers keep marks, and transactions open.
    limits = ["kafka-cluster:DescribeClusterDynamicConfiguration"] if marked else []
    connect = ["kafka-cluster:Connect", *(["kafka-cluster:WriteDataIdempotently"] if written else []), *limits]
    granted = [allow("ConnectToBrokers", connect, [brokers.cluster_arn])]
    if read:
        granted += [
            allow("ReadOwnTopics", ["kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"], _of(brokers.topics_arn, read)),
        ]
    if followed:
        granted.append(allow("ReadOffsetsOfGroups", ["kafka-cluster:DescribeGroup"], _of(brokers.groups_arn, followed)))
    # A transaction's commit is marked by a group's offsets.
    if read or marked:
        granted += [
            allow(
                "UseOwnGroups",
                ["kafka-cluster:DescribeGroup", "kafka-cluster:AlterGroup"],
                # A job's name has no dot, so no other job's groups begin with this name and a dot.
                _of(brokers.groups_arn, [own, f"{own}.*", *sorted(readers | named)]),
            ),
        ]
    # Its mark is an offset of the sink's topic, and Kafka takes a commit of one for reading the topic.
    # Source: Apache Kafka, "Authorization and ACLs", TxnOffsetCommit.
    if marked:
        granted.append(allow("MarkOwnTopics", ["kafka-cluster:ReadData"], _of(brokers.topics_arn, marked)))
    if written:
        transactions = ["kafka-cluster:DescribeTransactionalId", "kafka-cluster:AlterTransactionalId"]
        granted += [
            allow("WriteOwnTopics", ["kafka-cluster:DescribeTopic", "kafka-cluster:WriteData"], _of(brokers.topics_arn, written)),
            allow("UseOwnTransactions", transactions, _of(brokers.transactions_arn, [own, f"{own}.*"])),
        ]
    return granted


def _secrets(secrets: Mapping[str, str | None]) -> list[Statement]:
    """Only through Secrets Manager, and for these secrets."""
    if not secrets:
        return []
    granted = [allow("ReadOwnSecrets", ["secretsmanager:GetSecretValue"], sorted(secrets))]
    keys = sorted({key for key in secrets.values() if key is not None})
    if keys:
        encrypted = sorted(secret for secret, key in secrets.items() if key is not None)
        regions = sorted({secret.split(":")[3] for secret in encrypted})
        condition: Condition = {
            "StringLike": {"kms:ViaService": [f"secretsmanager.{region}.*" for region in regions]},
            "StringEquals": {"kms:EncryptionContext:SecretARN": encrypted},
        }
        granted.append(allow("UseKeysOfSecrets", ["kms:Decrypt"], keys, condition))
    return granted


def _of(arn: str, names: Sequence[str]) -> list[str]:
    return [f"{arn}/{name}" for name in names]
