package io.penstock.stream;

import org.apache.spark.sql.api.java.UDF0;

/**
 * A time of a micro-batch in epoch milliseconds, or null where there is none yet. The driver passes it to every task in a local property,
 * which may have several, separated by spaces.
 *
 * <p>As a literal, such as Spark's {@code current_timestamp()}, it would be part of the code that Spark generates: every micro-batch would
 * compile its stages anew, and run them interpreted until that is done.
 */
final class MicroBatchTime implements UDF0<Long> {
  private static final long serialVersionUID = 1L;
  private final String property;
  private final int part;
  // Spark deserializes the function for each task.
  private transient boolean known;
  private transient Long milliseconds;

  MicroBatchTime(String property, int part) {
    this.property = property;
    this.part = part;
  }

  @Override
  public Long call() {
    if (!known) {
      String text = TaskRows.property(property);
      milliseconds = text.isEmpty() ? null : Long.valueOf(text.split(" ")[part]);
      known = true;
    }
    return milliseconds;
  }
}
