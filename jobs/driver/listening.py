"""Spark's listener in Python, without what PySpark's own costs a micro-batch."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.sql.streaming.listener import JStreamingQueryListener, QueryProgressEvent, StreamingQueryListener, StreamingQueryProgress

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

# Left out of the text where they are no finite numbers, such as in the first micro-batch.
_RATES = ("inputRowsPerSecond", "processedRowsPerSecond")


class LightListener(StreamingQueryListener):
    """A listener that is handed the progress of a micro-batch as one text.

    PySpark 4.3.0 copies it field by field. Each of its maps is read to its end, which is an exception of Java, and for the kind of that
    exception PySpark looks up a dozen names in every jar: a fifth of the CPU time of a small micro-batch.
    """

    @cached_property
    def _jlistener(self) -> JavaObject:
        jvm: Any = SparkContext._jvm
        wrapper: JavaObject = jvm.PythonStreamingQueryListenerWrapper(_Listener(self))
        return wrapper


class _Listener(JStreamingQueryListener):
    def onQueryProgress(self, jevent: JavaObject) -> None:
        document = json.loads(jevent.progress().json())
        for source in document["sources"]:
            source.update({rate: source.get(rate) for rate in _RATES})
        self.pylistener.onQueryProgress(QueryProgressEvent(StreamingQueryProgress.fromJson(document)))
