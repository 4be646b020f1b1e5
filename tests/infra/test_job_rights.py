from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.environment_file import load as load_environment
from penstock.infra.job_folders import output_folders, refuse_inputs_that_begin_alike, refuse_shared_folders
from penstock.infra.job_rights import Brokers, Buckets, statements
from penstock.infra.plans import plans
from penstock.infra.policies import Statement
from penstock.jobs.spec import SpecFile, load
from tests.infra.iam_evaluation import allowed

SPECS = Path(__file__).resolve().parents[2] / "jobs/specs"
CHECKPOINTS, OUTPUT = "arn:aws:s3:::the-checkpoints", "arn:aws:s3:::the-output"
KEY = "arn:aws:kms:us-east-1:111122223333:key/1"
BUCKETS = Buckets(checkpoints_arn=CHECKPOINTS, output_arn=OUTPUT, output="the-output", key_arn=KEY, service="s3.us-east-1.amazonaws.com")
KAFKA = "arn:aws:kafka:us-east-1:111122223333"
BROKERS = Brokers(*(f"{KAFKA}:{kind}/the-brokers/uuid-1" for kind in ("cluster", "topic", "group", "transactional-id")))


def spec(folder: Path, name: str, **changes: Any) -> SpecFile:
    """The shipped job under another name, with its output in a folder of that name."""
    document = yaml.safe_load((SPECS / "user_credit.yaml").read_text("utf-8"))
    document["metadata"]["name"] = name
    document["spec"]["sinks"]["out"]["files"]["path"] = name
    document["spec"].update(changes)
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document), "utf-8")
    return load(file)


@pytest.fixture
def rights() -> list[Statement]:
    return statements(load(SPECS / "user_credit.yaml"), BUCKETS, BROKERS)


def may(rights: list[Statement], action: str, resource: str, **context: str) -> bool:
    return allowed(rights, action, resource, {key.replace("__", ":"): value for key, value in context.items()})


def listed(rights: list[Statement], bucket: str, prefix: str | None) -> bool:
    return allowed(rights, "s3:ListBucket", bucket, {} if prefix is None else {"s3:prefix": prefix})


def by_sid(rights: list[Statement]) -> Mapping[str, Statement]:
    sids = {statement["Sid"]: statement for statement in rights}
    assert len(sids) == len(rights)
    return sids


def test_these_are_all_the_statements_and_no_one_denies(rights: list[Statement]) -> None:
    assert set(by_sid(rights)) == {
        "ListOwnCheckpoints",
        "UseOwnCheckpoints",
        "ListOwnOutput1",
        "ListUnfinishedUploads",
        "WriteOwnOutput",
        "UseKeyByS3",
        "ConnectToBrokers",
        "ReadOwnTopics",
        "UseOwnGroups",
        "WriteOwnTopics",
        "UseOwnTransactions",
    }
    assert {statement["Effect"] for statement in rights} == {"Allow"}


def test_no_action_and_no_resource_is_a_wildcard_of_a_whole_service(rights: list[Statement]) -> None:
    for statement in rights:
        assert all(re.fullmatch(r"[a-z0-9-]+:[A-Za-z]+", action) for action in statement["Action"])
        assert "*" not in statement["Resource"]
        assert all(resource.startswith("arn:aws:") and "*" not in resource.split("/")[0] for resource in statement["Resource"])


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"])
def test_a_job_uses_its_own_checkpoints_and_no_others(rights: list[Statement], action: str) -> None:
    assert may(rights, action, f"{CHECKPOINTS}/user-credit/checkpoints/1/offsets/0")
    # Its driver takes savepoints itself, with upgradeMode: savepoint.
    assert may(rights, action, f"{CHECKPOINTS}/user-credit/savepoints/upgrade-3/data-0/commits/5")
    assert may(rights, action, f"{CHECKPOINTS}/user-credit/savepoints/upgrade-3/manifest.json")
    for other in ("flights/checkpoints/1/offsets/0", "user-credit-2/checkpoints/1/offsets/0", "user-credit", "x"):
        assert not may(rights, action, f"{CHECKPOINTS}/{other}")


@pytest.mark.parametrize("bucket", [CHECKPOINTS, OUTPUT])
def test_a_job_lists_its_own_folder_and_no_others(rights: list[Statement], bucket: str) -> None:
    assert listed(rights, bucket, "user-credit/")
    assert listed(rights, bucket, "user-credit/checkpoints/1/commits/") and listed(rights, bucket, "user-credit/savepoints/upgrade-3/")
    # None: a request without a prefix would list everything. The last has this job's folder as a prefix but belongs to another job.
    for other in (None, "", "flights/", "user-credit-2/", "user-credit"):
        assert not listed(rights, bucket, other)


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"])
def test_a_job_writes_its_own_output_and_no_others(rights: list[Statement], action: str) -> None:
    assert may(rights, action, f"{OUTPUT}/user-credit/dt=2026-11-21/user-data-1.json")
    for other in ("flights/part-1.json", "user-credit-2/part-1.json", "part-1.json"):
        assert not may(rights, action, f"{OUTPUT}/{other}")


def test_a_job_deletes_nothing_that_it_has_published(rights: list[Statement]) -> None:
    assert not may(rights, "s3:DeleteObject", f"{OUTPUT}/user-credit/dt=2026-11-21/user-data-1.json")


def test_a_job_finds_the_uploads_that_it_has_left_unfinished(rights: list[Statement]) -> None:
    assert may(rights, "s3:ListBucketMultipartUploads", OUTPUT)
    assert not may(rights, "s3:ListBucketMultipartUploads", CHECKPOINTS)


@pytest.mark.parametrize(
    "action",
    [
        "s3:GetObjectVersion",
        "s3:DeleteObjectVersion",
        "s3:PutObjectAcl",
        "s3:PutBucketPolicy",
        "s3:PutLifecycleConfiguration",
        "s3:GetBucketPolicy",
    ],
)
def test_a_job_neither_reaches_old_versions_nor_changes_a_bucket(rights: list[Statement], action: str) -> None:
    for resource in (CHECKPOINTS, f"{CHECKPOINTS}/user-credit/x", OUTPUT, f"{OUTPUT}/user-credit/x"):
        assert not may(rights, action, resource)


@pytest.mark.parametrize("action", ["kms:Decrypt", "kms:GenerateDataKey"])
def test_the_key_is_used_by_way_of_s3_and_for_these_buckets_alone(rights: list[Statement], action: str) -> None:
    by_s3 = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
    context = "kms:EncryptionContext:aws:s3:arn"
    for arn in (CHECKPOINTS, OUTPUT, f"{CHECKPOINTS}/user-credit/checkpoints/1/offsets/0"):
        assert allowed(rights, action, KEY, {**by_s3, context: arn})
    assert not allowed(rights, action, KEY, {**by_s3, context: "arn:aws:s3:::another"})
    assert not allowed(rights, action, KEY, by_s3)
    assert not allowed(rights, action, KEY, {context: CHECKPOINTS})
    assert not allowed(rights, action, KEY, {"kms:ViaService": "s3.eu-west-1.amazonaws.com", context: CHECKPOINTS})
    assert not allowed(rights, action, f"{KEY}2", {**by_s3, context: CHECKPOINTS})


@pytest.mark.parametrize("action", ["kms:Encrypt", "kms:CreateGrant", "kms:ScheduleKeyDeletion", "kms:PutKeyPolicy"])
def test_the_key_is_used_for_nothing_else(rights: list[Statement], action: str) -> None:
    assert not allowed(
        rights, action, KEY, {"kms:ViaService": "s3.us-east-1.amazonaws.com", "kms:EncryptionContext:aws:s3:arn": CHECKPOINTS}
    )


def test_a_job_reads_its_sources_and_writes_its_sinks(rights: list[Statement]) -> None:
    def topic(action: str, name: str) -> bool:
        return may(rights, f"kafka-cluster:{action}", f"{KAFKA}:topic/the-brokers/uuid-1/{name}")

    for source in ("events-a", "events-b"):
        assert topic("ReadData", source) and topic("DescribeTopic", source)
        assert not topic("WriteData", source)
    for sink in ("user-credit-errors", "user-credit-late", "user-credit-alerts"):
        assert topic("WriteData", sink) and topic("DescribeTopic", sink)
        assert not topic("ReadData", sink)
    for action in ("CreateTopic", "DeleteTopic", "AlterTopic", "AlterTopicDynamicConfiguration"):
        assert not topic(action, "events-a") and not topic(action, "user-credit-late")
    for other in ("flights", "events-a-2", "__consumer_offsets"):
        assert not any(topic(action, other) for action in ("DescribeTopic", "ReadData", "WriteData"))


def test_a_job_connects_to_its_cluster_and_alters_nothing_of_it(rights: list[Statement]) -> None:
    for action in ("Connect", "WriteDataIdempotently"):
        assert may(rights, f"kafka-cluster:{action}", BROKERS.cluster_arn)
        assert not may(rights, f"kafka-cluster:{action}", f"{KAFKA}:cluster/other/uuid-2")
    for action in ("AlterCluster", "AlterClusterDynamicConfiguration"):
        assert not may(rights, f"kafka-cluster:{action}", BROKERS.cluster_arn)


@pytest.mark.parametrize(("kind", "noun"), [("group", "Group"), ("transactional-id", "TransactionalId")])
def test_groups_and_transactions_are_the_jobs_own(rights: list[Statement], kind: str, noun: str) -> None:
    def own(name: str) -> bool:
        return all(
            may(rights, f"kafka-cluster:{verb}{noun}", f"{KAFKA}:{kind}/the-brokers/uuid-1/{name}") for verb in ("Describe", "Alter")
        )

    assert own("penstock.user-credit") and own("penstock.user-credit.1")
    assert not own("penstock.flights") and not own("penstock.user-credit-2") and not own("penstock.user-credit-2.1")
    # Consumer groups of Spark's readers: a prefix and a random suffix.
    assert own("penstock.user-credit.spark-8f14e45f-1-executor") and not own("spark-kafka-source-8f14e45f-1-executor")
    assert not may(rights, "kafka-cluster:DeleteGroup", f"{KAFKA}:group/the-brokers/uuid-1/penstock.user-credit")


def test_topics_of_a_pattern_and_readers_of_a_prefix_are_the_jobs(tmp_path: Path) -> None:
    kafka = {"pattern": "bank-(debits|credits)", "groupIdPrefix": "team.readers"}
    rights = statements(spec(tmp_path, "patterns", sources={"a": {"kafka": kafka}}, local={}), BUCKETS, BROKERS)

    def reads(topic: str) -> bool:
        return may(rights, "kafka-cluster:ReadData", f"{KAFKA}:topic/the-brokers/uuid-1/{topic}")

    assert reads("bank-debits") and reads("bank-credits") and not reads("banks") and not reads("events-a")
    groups = f"{KAFKA}:group/the-brokers/uuid-1"
    assert may(rights, "kafka-cluster:AlterGroup", f"{groups}/team.readers-8f14e45f-1-executor")
    assert not may(rights, "kafka-cluster:AlterGroup", f"{groups}/team.other")


def test_a_job_that_takes_over_from_another_group_may_read_its_offsets_and_no_more(tmp_path: Path) -> None:
    kafka = {"topic": "debits", "startingOffsets": "committed", "startingGroup": "ledger"}
    rights = statements(spec(tmp_path, "taking-over", sources={"a": {"kafka": kafka}}, local={}), BUCKETS, BROKERS)
    group = f"{KAFKA}:group/the-brokers/uuid-1/ledger"
    assert may(rights, "kafka-cluster:DescribeGroup", group)
    assert not may(rights, "kafka-cluster:AlterGroup", group)
    assert not may(rights, "kafka-cluster:DescribeGroup", f"{group}-2")


def test_a_job_may_commit_to_the_group_that_its_source_names(tmp_path: Path) -> None:
    kafka = {"topic": "debits", "groupId": "team.ledger", "startingGroup": "team.ledger"}
    rights = statements(spec(tmp_path, "named-group", sources={"a": {"kafka": kafka}}, local={}), BUCKETS, BROKERS)
    group = f"{KAFKA}:group/the-brokers/uuid-1/team.ledger"
    assert may(rights, "kafka-cluster:DescribeGroup", group) and may(rights, "kafka-cluster:AlterGroup", group)
    assert not may(rights, "kafka-cluster:AlterGroup", f"{group}-2")


def test_a_job_without_topics_to_read_may_mark_its_transactions(tmp_path: Path) -> None:
    document = yaml.safe_load((SPECS / "keyword_lines.yaml").read_text("utf-8"))
    document["spec"]["sinks"]["out"] = {"kafka": {"topic": "kept-lines", "guarantee": "exactly-once"}}
    file = tmp_path / "lines.yaml"
    file.write_text(yaml.safe_dump(document), "utf-8")
    rights = statements(load(file), BUCKETS, BROKERS)
    assert "ReadOwnTopics" not in by_sid(rights)
    group = f"{BROKERS.groups_arn}/penstock.keyword-lines.0123abcd.out"
    assert may(rights, "kafka-cluster:AlterGroup", group)
    assert not may(rights, "kafka-cluster:AlterGroup", group.replace("keyword-lines", "another"))


def test_files_are_read_where_they_lie_and_nowhere_else(tmp_path: Path) -> None:
    sources = {"a": {"files": {"path": "in/a"}}, "b": {"files": {"path": "b", "bucket": "the-lake"}}}
    rights = statements(spec(tmp_path, "reads-files", sources=sources, local={}), BUCKETS, BROKERS)
    assert may(rights, "s3:GetObject", f"{OUTPUT}/in/a/dt=2025-04-05/x.jsonl") and may(rights, "s3:GetObject", "arn:aws:s3:::the-lake/b/x")
    assert listed(rights, OUTPUT, "in/a/") and listed(rights, "arn:aws:s3:::the-lake", "b/")
    # Spark asks first whether the path is a file.
    assert may(rights, "s3:GetObject", f"{OUTPUT}/in/a") and listed(rights, OUTPUT, "in/a")
    assert not listed(rights, OUTPUT, "in/ab") and not listed(rights, OUTPUT, "in/") and not may(rights, "s3:GetObject", f"{OUTPUT}/in/ab")
    assert not may(rights, "s3:GetObject", f"{OUTPUT}/in/ab/x") and not may(rights, "s3:GetObject", "arn:aws:s3:::the-lake/c/x")
    assert not may(rights, "s3:PutObject", f"{OUTPUT}/in/a/x") and not may(rights, "s3:PutObject", "arn:aws:s3:::the-lake/b/x")
    assert not listed(rights, "arn:aws:s3:::the-lake", "") and not listed(rights, "arn:aws:s3:::the-lake", None)


def test_files_are_written_to_a_bucket_that_the_sink_names_and_nowhere_else(tmp_path: Path) -> None:
    lake = "arn:aws:s3:::the-lake"
    rights = statements(spec(tmp_path, "writes-files", sinks={"out": {"files": {"path": "b", "bucket": "the-lake"}}}), BUCKETS, BROKERS)
    assert may(rights, "s3:PutObject", f"{lake}/b/x") and may(rights, "s3:AbortMultipartUpload", f"{lake}/b/x")
    assert listed(rights, lake, "b/") and may(rights, "s3:ListBucketMultipartUploads", lake)
    assert not may(rights, "s3:PutObject", f"{lake}/bc/x") and not may(rights, "s3:DeleteObject", f"{lake}/b/x")
    assert not may(rights, "s3:PutObject", f"{OUTPUT}/b/x") and not may(rights, "s3:ListBucketMultipartUploads", OUTPUT)


def test_a_savepoint_that_the_spec_names_is_read_and_nothing_beside_it(tmp_path: Path) -> None:
    other, own = "arn:aws:s3:::others-checkpoints", f"{CHECKPOINTS}/clicks/savepoints/one/manifest.json"
    assert not may(statements(spec(tmp_path, "plain"), BUCKETS, BROKERS), "s3:GetObject", own)
    path = "s3a://others-checkpoints/clicks/savepoints/one"
    rights = statements(spec(tmp_path, "forked", initialSavepointPath=path), BUCKETS, BROKERS)
    assert may(rights, "s3:GetObject", f"{other}/clicks/savepoints/one/data-0/commits/7")
    assert listed(rights, other, "clicks/savepoints/one/")
    assert not may(rights, "s3:GetObject", f"{other}/clicks/savepoints/one-more/x")
    assert not may(rights, "s3:PutObject", f"{other}/clicks/savepoints/one/manifest.json")
    assert not listed(rights, other, "clicks/") and not may(rights, "s3:GetObject", own)


def test_a_transaction_may_commit_its_mark_to_the_topic_that_it_writes(tmp_path: Path) -> None:
    sinks = {
        "out": {"kafka": {"topic": "t-out", "guarantee": "exactly-once"}},
        "errors": {"kafka": {"topic": "t-errors"}},
        "late": {"kafka": {"topic": "t-late"}},
    }
    rights = statements(spec(tmp_path, "marked", sinks=sinks), BUCKETS, BROKERS)
    topics = f"{KAFKA}:topic/the-brokers/uuid-1"
    assert may(rights, "kafka-cluster:ReadData", f"{topics}/t-out")
    assert not may(rights, "kafka-cluster:ReadData", f"{topics}/t-errors")
    assert may(rights, "kafka-cluster:DescribeClusterDynamicConfiguration", BROKERS.cluster_arn)


def test_what_a_job_does_not_have_it_has_no_rights_for(tmp_path: Path) -> None:
    topics = {name: {"kafka": {"topic": f"t-{name}"}} for name in ("out", "errors", "late")}
    alone = by_sid(statements(spec(tmp_path, "topics-alone", sinks=topics), BUCKETS, BROKERS))
    assert {"ListOwnOutput1", "ListUnfinishedUploads", "WriteOwnOutput"}.isdisjoint(alone)
    assert alone["UseKeyByS3"]["Condition"]["StringLike"]["kms:EncryptionContext:aws:s3:arn"] == [CHECKPOINTS, f"{CHECKPOINTS}/*"]
    files = by_sid(statements(spec(tmp_path, "files-alone", sinks={"out": {"files": {"path": "files-alone"}}}), BUCKETS, BROKERS))
    assert {"WriteOwnTopics", "UseOwnTransactions"}.isdisjoint(files)
    assert files["ConnectToBrokers"]["Action"] == ["kafka-cluster:Connect"]


def test_the_output_bucket_by_its_name_is_what_it_is_without(tmp_path: Path) -> None:
    def granted(**bucket: str) -> list[Statement]:
        sources = {"a": {"files": {"path": "in", **bucket}}}
        sinks = {"out": {"files": {"path": "out", **bucket}}}
        return statements(spec(tmp_path, "one", sources=sources, sinks=sinks, local={}), BUCKETS, None)

    assert granted(bucket="the-output") == granted()
    assert granted(bucket="the-lake") != granted()


def test_brokers_that_do_not_ask_iam_need_no_rights() -> None:
    granted = statements(load(SPECS / "user_credit.yaml"), BUCKETS, None)
    assert not [action for statement in granted for action in statement["Action"] if action.startswith("kafka")]


def test_no_two_jobs_of_the_shipped_environments_touch_each_others_folders() -> None:
    jobs = plans(load_environment("production")).jobs
    refuse_shared_folders(jobs, "the-output")
    refuse_inputs_that_begin_alike(jobs, "the-output")
    for job in jobs:
        rights = statements(job.spec, BUCKETS, BROKERS)
        for other in (other for other in jobs if other.name != job.name):
            folders = [f"{CHECKPOINTS}/{other.name}", *(f"{OUTPUT}/{folder.path}" for folder in output_folders(other.spec, "the-output"))]
            for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
                assert not any(may(rights, action, f"{folder}/x") for folder in folders)
