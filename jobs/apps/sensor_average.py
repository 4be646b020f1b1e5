"""sensor_average: average temperature of each sensor per second, converted from Fahrenheit to Celsius."""

from penstock import Job, Tag, aggregate, tumbling

OPERATORS = ("read-sensors", "to-celsius", "average-by-second", "write-averages")


def build(job: Job) -> None:
    """Declares the job."""
    readings = job.source("readings", "id STRING NOT NULL, timestamp BIGINT, temperature DECIMAL(7,3) NOT NULL")
    celsius = readings.select(id="id", celsius="cast((temperature - 32) * 5 / 9 as decimal(9,4))")
    # Decimal: a sum of doubles depends on the order of the rows, which a replay may change.
    averages = aggregate(celsius, tumbling("1s"), keys=["id"], average="cast(avg(celsius) as decimal(9,3))", readings="count(*)")
    job.write(averages, "out")
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
