package io.penstock.stream;

import org.apache.spark.sql.api.java.UDF2;

/** Counts a row: the number of its split and its event time in epoch milliseconds, either null where it has none. Always true. */
final class Count implements UDF2<Integer, Long, Boolean> {
  private static final long serialVersionUID = 1L;
  private final String operator;
  private final PassedRows all;
  // Spark deserializes the function for each task.
  private transient TaskRows task;

  Count(String operator, PassedRows all) {
    this.operator = operator;
    this.all = all;
  }

  @Override
  public Boolean call(Integer split, Long milliseconds) {
    if (task == null) {
      task = TaskRows.of(operator, all);
    }
    task.count(split, milliseconds);
    return Boolean.TRUE;
  }
}
