"""word_count: how often each word has come so far, from lines of text.

The lines come from Kafka or from a socket, as the spec says; the current count of each word goes to a topic that is keyed by it.
"""

from penstock import Job, aggregate, global_window

OPERATORS = ("read-lines", "split", "count-by-word", "write-counts")


def build(job: Job) -> None:
    """Declares the job."""
    lines = job.source("lines", "line STRING")
    words = lines.explode("word", "filter(split(lower(line), '[^a-z0-9_]+'), part -> part <> '')").select(word="word")
    job.write(aggregate(words, global_window(), keys=["word"], emit="updates", count="count(*)"), "out")
    job.side_output("errors")
