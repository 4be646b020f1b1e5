"""A compacted topic, unchanged, including deletes and the position of the record."""

from penstock import Job


def build(job: Job) -> None:
    rows = job.source("a", "id INT NOT NULL, at STRING, name STRING", record="r")
    place = "concat(split(r.topic, '-')[1], '/', r.partition, '/', r.offset)"
    header = "cast(element_at(r.headers, 1).value as string)"
    out = rows.select(id="id", name="name", gone="_deleted", place=place, header=header, key="cast(r.key as string)")
    job.write(out, "out")
    job.side_output("errors")
