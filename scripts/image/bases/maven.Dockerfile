# In the place of maven: Debian's JDK and Maven. It builds and stays out of the image.
ARG SYSTEM
FROM ${SYSTEM}
RUN apt-get update -q \
    && apt-get install -qy --no-install-recommends maven openjdk-17-jdk-headless \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives
