"""Suppressions of the scanner: they are findings, and what they hide is scanned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.scripts.security.finding import Finding
from penstock.scripts.security.rules import finding

# Source: checkov's documentation, "Suppressing and Skipping Policies"; its regular expressions ignore neither case nor what precedes.
_COMMENT = re.compile(r"\b(?P<tool>checkov|bridgecrew|cortex):skip", re.IGNORECASE)
_ANNOTATION = re.compile(r"\b(?P<tool>checkov|bridgecrew|cortex)\.io/skip", re.IGNORECASE)


def in_text(text: str, path: str) -> Iterator[Finding]:
    """Suppressions in the lines of a text.

    Args:
        text: the text.
        path: the object that it belongs to.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        if _COMMENT.search(line) or _ANNOTATION.search(line):
            yield finding("PEN_SKIP_1", path, f"line {number}: {line.strip()[:120]}")


def without(text: str) -> str:
    """The text with its suppressions made ineffective."""
    return _ANNOTATION.sub(r"\g<tool>.io/no-skip", _COMMENT.sub(r"\g<tool>:no-skip", text))


def in_document(document: Any, path: str) -> Iterator[Finding]:
    """Suppressions in the keys and values of a document, at any depth.

    Args:
        document: a manifest, or the arguments of a resource.
        path: the object that it is.
    """
    for text in _strings(document):
        if _COMMENT.search(text) or _ANNOTATION.search(text):
            yield finding("PEN_SKIP_1", path, text.strip()[:120])


def document_without(document: Any) -> Any:
    """The document with its suppressions made ineffective."""
    if isinstance(document, Mapping):
        return {_named(key): document_without(value) for key, value in document.items()}
    if isinstance(document, Sequence) and not isinstance(document, str):
        return [document_without(one) for one in document]
    return _named(document)


def _named(value: Any) -> Any:
    return without(value) if isinstance(value, str) else value


def _strings(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, Mapping):
        for key, value in document.items():
            yield f"{key}: {value}" if isinstance(value, str) else str(key)
            yield from () if isinstance(value, str) else _strings(value)
    elif isinstance(document, Sequence):
        for one in document:
            yield from _strings(one)
