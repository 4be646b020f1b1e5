"""flights_weather: each departure with the latest weather of its airport at that time.

The weather is a table that changes hourly: a row of an airport is valid until the next one. A departure is held back until no more
weather that could match it can arrive.
"""

from penstock import Job, Side, Tag, temporal_join

OPERATORS = ("read-departures", "read-weather", "weather-at-departure", "write-departures")

DEPARTURES = "id BIGINT NOT NULL, carrier STRING, origin STRING NOT NULL, dest STRING, dep_delay BIGINT, told_at STRING"
WEATHER = "origin STRING NOT NULL, time_hour STRING, temp DOUBLE, visib DOUBLE, wind_speed DOUBLE"


def build(job: Job) -> None:
    """Declares the job."""
    departures = job.source("departures", DEPARTURES).filter("dep_delay is not null")
    weather = job.source("weather", WEATHER)
    joined = temporal_join(Side("d", departures, "origin"), Side("w", weather, "origin"), how="left")
    job.write(
        joined.select(
            id="d.id",
            carrier="d.carrier",
            origin="d.origin",
            dest="d.dest",
            told_at="d.told_at",
            dep_delay="d.dep_delay",
            weather_hour="w.time_hour",
            temp="w.temp",
            visib="w.visib",
            wind_speed="w.wind_speed",
        ),
        "out",
    )
    job.side_output("errors")
    job.side_output("late", Tag.LATE)
