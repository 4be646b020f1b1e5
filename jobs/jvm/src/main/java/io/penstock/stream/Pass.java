package io.penstock.stream;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.api.java.UDF3;

/**
 * Counts a row, by the number of its split and its event time in epoch milliseconds, either null where it has none: always true. Or takes a
 * row out of the stream, by its tag, the reason, and its record, null where the row is only counted: always false.
 */
final class Pass implements UDF2<Integer, Long, Boolean>, UDF3<String, String, Row, Boolean> {
  private static final long serialVersionUID = 1L;
  private final String operator;
  private final PassedRows all;
  // Spark deserializes the function for each task.
  private transient TaskRows task;

  Pass(String operator, PassedRows all) {
    this.operator = operator;
    this.all = all;
  }

  @Override
  public Boolean call(Integer split, Long milliseconds) {
    task().count(split, milliseconds);
    return Boolean.TRUE;
  }

  @Override
  public Boolean call(String tag, String reason, Row record) {
    task().leave(tag, reason, record);
    return Boolean.FALSE;
  }

  private TaskRows task() {
    task = task == null ? TaskRows.of(operator, all) : task;
    return task;
  }
}
