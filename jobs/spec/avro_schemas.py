"""The Avro schema files beside a spec."""

from __future__ import annotations

from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.errors import AvroSchemaUnread
from penstock.sizing.errors import PenstockError, raise_all


def avro_schemas(spec: SpecFile) -> dict[str, str]:
    """File name -> text of the Avro schemas that the sources of a spec name.

    Raises:
        PenstockError: SPEC-030 with the line of the spec, for each file that can't be read; several are raised as `Faults`.
    """
    schemas: dict[str, str] = {}
    faults: list[PenstockError] = []
    for name, source in spec.job.spec.kafka_sources.items():
        if source.avro is None:
            continue
        file = source.avro.schema_file
        try:
            schemas[file] = (spec.path.parent / file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            fault = AvroSchemaUnread(given=file, need=f"a file beside the spec; {reason}", fix="check the name")
            faults.append(spec.document.locate(fault, ("spec", "sources", name, "kafka", "avro", "schemaFile")))
    raise_all(faults)
    return schemas
