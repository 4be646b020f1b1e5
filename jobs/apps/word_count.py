"""word_count: running count of each word in lines of text.

The spec selects Kafka or a socket as the source of the lines; the current count of each word goes to a topic keyed by word.
"""

from penstock import Job, aggregate, global_window

OPERATORS = ("read-lines", "split", "count-by-word", "write-counts")


def build(job: Job) -> None:
    """Declares the job."""
    lines = job.source("lines", "line STRING")
    words = lines.explode("word", "filter(split(lower(line), '[^a-z0-9_]+'), part -> part <> '')").select(word="word")
    job.write(aggregate(words, global_window(), keys=["word"], emit="updates", count="count(*)"), "out")
    job.side_output("errors")
