"""What a UDF does. Without type hints: Spark warns of those that it can't read."""


def section(page):  # type: ignore[no-untyped-def]
    """Runs in Spark's Python workers, which import it by this module's name."""
    return (page or "").strip("/").split("/")[0] or "home"
