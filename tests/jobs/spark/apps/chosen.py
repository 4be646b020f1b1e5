"""One input, unchanged; the spec's parameters change that with SQL."""

from penstock import Job


def build(job: Job) -> None:
    asked = {name: str(value) for name, value in job.parameters.items()}
    rows = job.source("a", "key STRING NOT NULL, at STRING").select(key="key", id=asked.get("id", "key"))
    if "tag" in asked:
        rows = rows.divert(asked["tag"], "key = 'x'", "'why'")
    job.write(rows, {"out": asked.get("condition")})
    job.side_output("errors")
