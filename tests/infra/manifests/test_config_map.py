"""The files that a driver reads, besides its spec."""

from __future__ import annotations

from penstock.infra.manifests.config_map import config_map, fingerprint
from penstock.infra.manifests.spark_application import operated_manifests
from tests.infra.manifests.jobs_in_cluster import deployed, of_kind


def test_avro_schemas_lie_beside_the_spec_in_the_pod() -> None:
    with_schema = deployed(schemas={"click.avsc": '{"type": "string"}'})
    assert config_map(with_schema)["data"]["click.avsc"] == '{"type": "string"}'
    (of_operator,) = of_kind(operated_manifests(with_schema), "ConfigMap")
    assert of_operator["data"]["click.avsc"] == '{"type": "string"}'
    assert fingerprint(with_schema) != fingerprint(deployed()), "a driver that runs is not told of another schema"
