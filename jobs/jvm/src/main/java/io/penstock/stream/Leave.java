package io.penstock.stream;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF3;

/** Takes a row out of the stream: its tag, the reason, and its record, null where the row is only counted. Always false. */
final class Leave implements UDF3<String, String, Row, Boolean> {
  private static final long serialVersionUID = 1L;
  private final String operator;
  private final PassedRows all;
  // Spark deserializes the function for each task.
  private transient TaskRows task;

  Leave(String operator, PassedRows all) {
    this.operator = operator;
    this.all = all;
  }

  @Override
  public Boolean call(String tag, String reason, Row record) {
    if (task == null) {
      task = TaskRows.of(operator, all);
    }
    task.leave(tag, reason, record);
    return Boolean.FALSE;
  }
}
