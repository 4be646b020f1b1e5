"""``python -m penstock.scripts.dev.spark_keys > sizing/data/spark-4.3.0-keys.txt``: the settings of the pinned Spark, read from its own
jars.

Spark registers most settings as `ConfigEntry` when a class is loaded; those have a type, which an entry reveals when it is given an
invalid value. Others are string constants in the code, read from the constant pools of its classes. Needs Java and the set-up's
downloads. A test compares the file with the jars.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from penstock.scripts.layout import spark_jars

# Valid for no type and no set of options.
_NONSENSE = "~"
_KEY = re.compile(r"spark(\.[A-Za-z0-9_-]+)+")
_FAMILY = re.compile(r"spark(\.[A-Za-z0-9_-]+)+\.")
# Prefixes that the code looks for and that are not families: what follows them is registered by name.
_NO_FAMILIES = {
    "spark.history.fs.",
    "spark.sql.",
    "spark.sql.adaptive.",
    "spark.sql.codegen.",
    "spark.sql.execution.",
    "spark.sql.optimizer.",
    "spark.sql.shuffle.",
    "spark.sql.streaming.stateStore.",
}
_ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
# Source: the JVM specification, 4.4: bytes of a constant after its tag.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_UTF8, _STRING, _TWO_PLACES = 1, 8, (5, 6)


class Row(NamedTuple):
    """One line of the file.

    Args:
        key: the setting.
        kind: ``boolean``, ``int``, ``long``, ``double``, ``bytes``, ``time``, ``text``; ``options`` or ``Options`` (any case) with their
            values separated by ``|``; ``named`` for a string constant; ``family`` for a prefix that any name may follow; ``removed`` or
            ``renamed``.
        note: Spark's message for a setting that is deprecated, removed or renamed.
    """

    key: str
    kind: str
    note: str = ""


def rows() -> list[Row]:
    """All the settings, sorted by name."""
    classes, names = _from_the_jars()
    by_key = {key: Row(key, "family" if key.endswith(".") else "named") for key in names}
    with _gateway() as gateway:
        jvm = gateway.jvm
        for key, entry in _entries(jvm, classes).items():
            by_key[key] = Row(key, _kind(entry))
        for row in [*_renamed(jvm), *_deprecated(jvm), *_removed(jvm)]:
            # A setting registered under a name of its own is at most deprecated.
            kind = by_key[row.key].kind if row.key in by_key and row.kind == "deprecated" else row.kind
            by_key[row.key] = row._replace(kind="named" if kind == "deprecated" else kind)
    return [by_key[key] for key in sorted(by_key) if not key.startswith("spark.test")]


@contextmanager
def registered() -> Iterator[dict[str, Any]]:
    """The settings that Spark registers -> its entries, which live as long as the context."""
    classes, _ = _from_the_jars()
    with _gateway() as gateway:
        yield _entries(gateway.jvm, classes)


def static() -> list[str]:
    """The settings of `spark.sql.` that no Spark session can change, sorted."""
    classes, _ = _from_the_jars()
    with _gateway() as gateway:
        sql = _sql(gateway.jvm)
        return sorted(key for key in _entries(gateway.jvm, classes) if key.startswith("spark.sql.") and sql.isStaticConfigKey(key))


def rendered() -> str:
    """The file."""
    head = [
        f"# Settings of Spark {pyspark.__version__}, read from its jars by "
        "`python -m penstock.scripts.dev.spark_keys`; a test holds the two together.",
        "# key, kind, note; with tabs between them. named: only a text in the code, of no known type; family: any name may follow.",
    ]
    lines = ["\t".join(row).rstrip("\t") for row in rows()]
    return "\n".join([*head, *lines]) + "\n"


def _jars() -> list[Path]:
    own = sorted(Path(pyspark.__file__).parent.glob("jars/spark-*.jar"))
    return own + [jar for jar in spark_jars() if jar.name.startswith("spark-")]


def _from_the_jars() -> tuple[list[str], set[str]]:
    """The classes that register settings, and the settings that are string constants in any class."""
    classes: list[str] = []
    names: set[str] = set()
    for jar in _jars():
        with zipfile.ZipFile(jar) as archive:
            for file in archive.namelist():
                content = archive.read(file) if file.endswith(".class") else b""
                if b"spark" in content:
                    texts = _texts(content)
                    names |= {text for text in texts if _KEY.fullmatch(text) or (_FAMILY.fullmatch(text) and text not in _NO_FAMILIES)}
                    names |= _rocksdb(file, texts)
                    if b"internal/config/ConfigBuilder" in content and file.endswith("$.class"):
                        classes.append(file.removesuffix(".class").replace("/", "."))
    return [name for name in classes if name.split(".")[-1] not in ("ConfigBuilder$", "Tests$")], names


def _rocksdb(file: str, texts: set[str]) -> set[str]:
    """RocksDB's own settings: their names are appended to a common prefix."""
    if not file.endswith("/state/RocksDBConf$.class"):
        return set()
    named = {text for text in texts if re.fullmatch(r"[a-z][A-Za-z0-9.]{4,}", text)}
    return {f"{_ROCKSDB}.{text}" for text in named if text != "false" and not text.startswith("spark.")}


def _texts(content: bytes) -> set[str]:
    """The strings in the constant pool of a class."""
    count = struct.unpack_from(">H", content, 8)[0]
    at, index = 10, 1
    utf8: dict[int, bytes] = {}
    used: list[int] = []
    while index < count:
        tag = content[at]
        if tag == _UTF8:
            length = struct.unpack_from(">H", content, at + 1)[0]
            utf8[index] = content[at + 3 : at + 3 + length]
            at += 3 + length
        else:
            if tag == _STRING:
                used.append(struct.unpack_from(">H", content, at + 1)[0])
            at += 1 + _SIZES[tag]
        index += 2 if tag in _TWO_PLACES else 1
    return {utf8[place].decode("utf-8", "replace") for place in used}


@contextmanager
def _gateway() -> Iterator[Any]:
    path = os.pathsep.join(str(jar) for jar in spark_jars())
    conf = SparkConf(loadDefaults=False).set("spark.driver.extraClassPath", path)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    gateway = launch_gateway(conf=conf, popen_kwargs=quiet)  # type: ignore[no-untyped-call]
    process = gateway.proc
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=60)


def _entries(jvm: Any, classes: Iterable[str]) -> dict[str, Any]:
    """What the classes register when they are loaded; settings of Spark's own tests are left out."""
    for name in classes:
        jvm.java.lang.Class.forName(name)
    entries = list(_object(jvm.org.apache.spark.internal.config, "ConfigEntry").knownConfigs().values())
    named = {str(entry.key()): entry for entry in entries}
    return {key: entry for key, entry in named.items() if not key.startswith(("spark.test", "spark.__test__"))}


def _kind(entry: Any) -> str:
    if not refusal(entry, ""):
        # A list of values, which may be empty, or any text.
        return "text"
    said = refusal(entry, _NONSENSE)
    typed = re.search(r"should be a/an '(boolean|int|long|double|bytes|time)\b", said)
    if typed:
        return typed.group(1)
    options = re.search(r"should be one of '([^']*)'", said)
    if options:
        values = sorted(options.group(1).split(", "))
        any_case = not any(refusal(entry, changed) for value in values for changed in (value.lower(), value.upper()))
        return f"{'Options' if any_case else 'options'} {'|'.join(values)}"
    return "text"


def refusal(entry: Any, value: str) -> str:
    """Spark's message for a value of a setting; empty if it is valid.

    Args:
        entry: one of `registered`.
        value: as a user writes it.
    """
    try:
        entry.valueConverter().apply(value)
    except Exception as error:
        # py4j has no stubs; its error carries the JVM's own.
        thrown = getattr(error, "java_exception", None)
        if thrown is None:
            raise
        return str(thrown.getMessage())
    return ""


def _renamed(jvm: Any) -> Iterator[Row]:
    for pair in _each(_field(jvm, "allAlternatives")):
        older = pair._2()
        yield Row(pair._1(), "renamed", f"{older._1()} since {older._2().version()}")


def _deprecated(jvm: Any) -> Iterator[Row]:
    core = [pair._2() for pair in _each(_field(jvm, "deprecatedConfigs"))]
    sql = [pair._2() for pair in _each(_sql(jvm).deprecatedSQLConfigs())]
    for setting in core:
        yield Row(setting.key(), "deprecated", _note("deprecated", setting.version(), setting.deprecationMessage()))
    for setting in sql:
        yield Row(setting.key(), "deprecated", _note("deprecated", setting.version(), setting.comment()))


def _removed(jvm: Any) -> Iterator[Row]:
    for pair in _each(_sql(jvm).removedSQLConfigs()):
        setting = pair._2()
        yield Row(setting.key(), "removed", _note("removed", setting.version(), setting.comment()))


def _note(what: str, version: str, comment: str) -> str:
    return " ".join(f"{what} in {version}: {comment}".split())


def _sql(jvm: Any) -> Any:
    return _object(jvm.org.apache.spark.sql.internal, "SQLConf")


def _field(jvm: Any, name: str) -> Any:
    """A private field of SparkConf's companion."""
    companion = _object(jvm.org.apache.spark, "SparkConf")
    field = companion.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(companion)


def _each(collection: Any) -> Iterator[Any]:
    iterator = collection.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _object(package: Any, name: str) -> Any:
    return getattr(getattr(package, f"{name}$"), "MODULE$")


if __name__ == "__main__":
    print(rendered(), end="")
