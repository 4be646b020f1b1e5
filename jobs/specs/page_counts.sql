-- The three pages that are seen most in every five minutes, in SQL.
CREATE SOURCE visits (visit_id STRING NOT NULL, page STRING NOT NULL, at STRING);

-- A browser that gets no answer tells of its visit again.
CREATE VIEW once AS DEDUPLICATE visits BY visit_id WITHIN '10m';

CREATE VIEW pages AS SELECT lower(page) AS page FROM once WHERE page <> '/health';

CREATE VIEW counts AS
  SELECT page, window_start, window_end, count(*) AS visits FROM pages GROUP BY page, TUMBLE('5m');

INSERT INTO out TOP 3 OF counts ORDER BY visits DESC;
SIDE OUTPUT errors;
SIDE OUTPUT late FOR late;
