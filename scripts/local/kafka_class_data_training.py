"""A broker whose JVM leaves its classes in an archive: ``python -m penstock.scripts.local.kafka_class_data_training FILE FOLDER``.

It gets a topic, a record and a consumer with a group, as the brokers of local runs do.
"""

from __future__ import annotations

import sys
from pathlib import Path

from confluent_kafka import Consumer, Producer

from penstock.scripts.local import kafka_topics
from penstock.scripts.local.kafka_broker import KafkaBroker

_TOPIC = "classes"
# The JVM writes the archive after the broker has stopped.
_STOP_S = 600
_ANSWER_S = 60


def main(archive: Path, folder: Path) -> None:
    """Runs the broker and ends its JVM, which then writes the archive.

    Args:
        archive: the file that it writes.
        folder: for the broker's data and its log; exists.
    """
    # What it leaves out, signed jars and classes made at run time, is a line each.
    options = (f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds=error", "-Xlog:cds+dynamic=error")
    log = folder / "kafka.log"
    with KafkaBroker(folder=folder / "kafka", log=log, java_options=options, stop_limit_s=_STOP_S) as broker:
        kafka_topics.create(broker.address, {_TOPIC: 1})
        _use(broker.address)


def _use(brokers: str) -> None:
    producer = Producer({"bootstrap.servers": brokers, "transactional.id": _TOPIC})
    producer.init_transactions(_ANSWER_S)
    producer.begin_transaction()
    producer.produce(_TOPIC, b"a record")
    producer.commit_transaction(_ANSWER_S)
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": _TOPIC, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([_TOPIC])
        assert consumer.poll(_ANSWER_S) is not None, "the broker has not answered"
        consumer.commit()
    finally:
        consumer.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
