"""Errors that documents, secrets and databases have in common (SPEC-..., JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed


class UnreadableDocument(DocumentError):
    """The file does not exist, is a directory, or is not UTF-8 text."""

    code = "SPEC-001"
    title = "cannot read the document"


class BrokenYaml(DocumentError):
    """The text is not valid YAML, or its root is not a mapping."""

    code = "SPEC-002"
    title = "invalid YAML"


class DuplicateKey(DocumentError):
    """A mapping defines the same key twice; YAML would silently keep the last value."""

    code = "SPEC-003"
    title = "duplicate key"


class UnknownField(DocumentError):
    """The document has no such field; often a typo."""

    code = "SPEC-004"
    title = "unknown field"


class MissingField(DocumentError):
    """A field without a default is not set."""

    code = "SPEC-005"
    title = "missing required field"


class BadValue(DocumentError):
    """The value has the wrong type or is out of range."""

    code = "SPEC-006"
    title = "invalid value"


class BadQuantity(DocumentError):
    """A memory size, CPU quantity or duration is not in a supported format."""

    code = "SPEC-007"
    title = "invalid quantity"


class Contradiction(DocumentError):
    """Two fields are each valid but cannot be combined."""

    code = "SPEC-008"
    title = "conflicting fields"


class DocumentTooLarge(DocumentError):
    """The document exceeds the maximum size, number of values or nesting depth."""

    code = "SPEC-011"
    title = "document too large"


class BadDeclaration(RunFailed):
    """The app uses something that its spec does not define, or omits a required declaration."""

    code = "JOB-004"
    title = "app does not match its spec"


class SecretUnusable(RunFailed):
    """The secret of a connection or of the brokers cannot be read from AWS Secrets Manager, or does not contain credentials."""

    code = "JOB-052"
    title = "invalid secret"


class DatabaseUnreachable(RunFailed):
    """A database does not respond or rejects the connection. No data is lost: the micro-batch is not committed and runs again."""

    code = "JOB-053"
    title = "database unreachable"


class TableFileUnread(RunFailed):
    """A file that rows are joined with does not exist, cannot be read by the job, or is not in the declared format."""

    code = "JOB-073"
    title = "cannot read a table file"
