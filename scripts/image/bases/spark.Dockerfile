# In the place of apache/spark: Debian's JRE and Python, and PySpark's distribution laid out as that image lays out Spark.
ARG SYSTEM
FROM ${SYSTEM}
RUN groupadd --system --gid=185 spark \
    && useradd --system --uid=185 --gid=spark --home-dir /opt/spark --no-create-home spark \
    && apt-get update -q \
    && apt-get install -qy --no-install-recommends openjdk-17-jre-headless python3 tini procps \
    && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*.log /var/log/apt \
    && mkdir -p /opt/java /opt/spark/work-dir \
    && ln -s "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" /opt/java/openjdk \
    && chown spark:spark /opt/spark/work-dir && chmod g+w /opt/spark/work-dir
COPY spark/ /opt/spark/
COPY entrypoint.sh decom.sh /opt/
ENV JAVA_HOME=/opt/java/openjdk \
    SPARK_HOME=/opt/spark \
    PATH=/opt/java/openjdk/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /opt/spark/work-dir
USER spark
ENTRYPOINT ["/opt/entrypoint.sh"]
