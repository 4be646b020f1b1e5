"""The same jobs in Flink SQL, as its documentation writes them.

Each text is formatted with the names of the topics, ``{topics[events]}``, and with ``{kafka}``, the options of a connector that reads.
"""

_JSON = "'format' = 'json', 'json.ignore-parse-errors' = 'true', 'json.timestamp-format.standard' = 'ISO-8601'"
_OUT = "WITH ('connector' = 'kafka', 'topic' = '{out}', {sink}, 'format' = 'json')"
# Of rows of a window, as Penstock and Spark write them.
_WINDOW = """
  DATE_FORMAT(window_start, 'yyyy-MM-dd''T''HH:mm:ss.SSS') || 'Z' AS window_start,
  DATE_FORMAT(window_end, 'yyyy-MM-dd''T''HH:mm:ss.SSS') || 'Z' AS window_end"""

ADS = f"""
CREATE TABLE events (
  ad_id STRING, event_type STRING, event_time BIGINT,
  ts AS TO_TIMESTAMP_LTZ(event_time, 3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND
) WITH ('topic' = '{{topics[events]}}', {{kafka}}, {_JSON});
CREATE TABLE campaigns (
  ad_id STRING, campaign_id STRING, `at` TIMESTAMP_LTZ(3), WATERMARK FOR `at` AS `at` - INTERVAL '10' SECOND,
  PRIMARY KEY (ad_id) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = '{{topics[campaigns]}}', {{brokers}}, 'key.format' = 'raw',
  'value.format' = 'json', 'value.json.timestamp-format.standard' = 'ISO-8601', 'value.fields-include' = 'ALL');
CREATE TABLE out_rows (campaign_id STRING, window_start_ms BIGINT, `views` BIGINT) {_OUT};
CREATE VIEW joined AS
  SELECT c.campaign_id, e.ts
  FROM (SELECT ad_id, ts FROM events WHERE event_type = 'view') AS e
  JOIN campaigns FOR SYSTEM_TIME AS OF e.ts AS c ON e.ad_id = c.ad_id;
INSERT INTO out_rows
  SELECT campaign_id, 1000 * CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_start) AS BIGINT), COUNT(*)
  FROM TABLE(TUMBLE(TABLE joined, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end, campaign_id
"""

ERROR_LOGS = f"""
CREATE TABLE logs (line STRING) WITH ('topic' = '{{topics[logs]}}', {{kafka}}, 'format' = 'raw');
CREATE TABLE out_rows (line STRING) {_OUT};
INSERT INTO out_rows SELECT line FROM (SELECT UPPER(line) AS line FROM logs) WHERE line LIKE '%ERROR%'
"""

_IMPRESSIONS = f"""
CREATE TABLE impressions (
  region_code STRING, unique_session_token STRING, impressions BIGINT, `at` TIMESTAMP_LTZ(3),
  WATERMARK FOR `at` AS `at` - INTERVAL '10' SECOND
) WITH ('topic' = '{{topics[impressions]}}', {{kafka}}, {_JSON});
"""

TUMBLING = f"""{_IMPRESSIONS}
CREATE TABLE out_rows (region_code STRING, window_start STRING, window_end STRING, events BIGINT, total_impressions BIGINT) {_OUT};
INSERT INTO out_rows
  SELECT region_code, {_WINDOW}, COUNT(*), SUM(impressions)
  FROM TABLE(TUMBLE(TABLE impressions, DESCRIPTOR(`at`), INTERVAL '5' MINUTE))
  GROUP BY window_start, window_end, region_code
"""

SESSIONS = f"""{_IMPRESSIONS}
CREATE TABLE out_rows (
  unique_session_token STRING, window_start STRING, window_end STRING, events BIGINT, total_impressions BIGINT
) {_OUT};
INSERT INTO out_rows
  SELECT unique_session_token, {_WINDOW}, COUNT(*), SUM(impressions)
  FROM TABLE(SESSION(TABLE impressions PARTITION BY unique_session_token, DESCRIPTOR(`at`), INTERVAL '30' MINUTE))
  GROUP BY window_start, window_end, unique_session_token
"""

INTERVAL_JOIN = f"""
CREATE TABLE impressions (id STRING, `at` BIGINT, ts AS TO_TIMESTAMP_LTZ(`at`, 3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND)
  WITH ('topic' = '{{topics[impressions]}}', {{kafka}}, {_JSON});
CREATE TABLE clicks (id STRING, `at` BIGINT, ts AS TO_TIMESTAMP_LTZ(`at`, 3), WATERMARK FOR ts AS ts - INTERVAL '10' SECOND)
  WITH ('topic' = '{{topics[clicks]}}', {{kafka}}, {_JSON});
CREATE TABLE out_rows (id STRING, after_ms BIGINT) {_OUT};
INSERT INTO out_rows
  SELECT i.id, c.`at` - i.`at` FROM impressions AS i JOIN clicks AS c
  ON i.id = c.id AND c.ts BETWEEN i.ts AND i.ts + INTERVAL '60' SECOND
"""

DEDUP = f"""
CREATE TABLE orders (id STRING, `at` BIGINT, arrival AS PROCTIME()) WITH ('topic' = '{{topics[orders]}}', {{kafka}}, {_JSON});
CREATE TABLE out_rows (id STRING) {_OUT};
INSERT INTO out_rows SELECT id FROM (
  SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY arrival ASC) AS place FROM orders
) WHERE place = 1
"""
