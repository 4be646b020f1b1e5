"""Lines of text from a TCP server as a source, for first experiments.

The server sends each line once. Spark keeps unprocessed lines only in the driver's memory, so they are lost when the driver ends;
written output remains. Spark's source can't resume from a checkpoint (4.3.0: "Offsets committed out of order"), so the driver rejects
that with JOB-021.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sources import records
from penstock.jobs.sources.records import HEADERS, SPLIT, Input
from penstock.jobs.sources.values import Values
from penstock.jobs.spec import SocketSource
from penstock.jobs.stream.streams import Stream


def stream(given: Input, socket: SocketSource, url: str) -> Stream:
    """The lines of a server as a stream with one text field.

    Args:
        given: the source.
        socket: settings of the connection.
        url: ``tcp://host:port``.

    Raises:
        BadDeclaration: JOB-004, a schema other than one text field, or an invalid address.
    """
    read = _lines(given, socket, url) if given.records is None else given.records.withColumn(SPLIT, F.lit(0))
    return records.stream(given, Values("text"), read)


def _lines(given: Input, socket: SocketSource, url: str) -> DataFrame:
    server = urlsplit(url)
    if server.scheme != "tcp" or server.hostname is None or server.port is None:
        raise BadDeclaration(path=f"connection {socket.connection}", need="tcp://host:port", fix="correct it in the environment")
    lines = given.session.readStream.format("socket").options(host=server.hostname, port=server.port, includeTimestamp=True).load()
    return lines.select(
        F.lit(None).cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        F.lit(socket.connection).alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
        "timestamp",
        F.lit(None).cast(HEADERS).alias("headers"),
        F.lit(0).alias(SPLIT),
    )
