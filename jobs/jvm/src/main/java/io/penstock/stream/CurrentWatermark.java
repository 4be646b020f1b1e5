package io.penstock.stream;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.api.java.UDF0;

/**
 * The watermark that the rows of a micro-batch are compared with, in epoch milliseconds, or null where there is none yet. The driver passes
 * it to every task in the local property {@code penstock.watermark}: the current watermark, and up to where state may have been cleared.
 */
final class CurrentWatermark implements UDF0<Long> {
  private static final long serialVersionUID = 1L;
  private final int part;
  // Spark deserializes the function for each task.
  private transient boolean known;
  private transient Long milliseconds;

  CurrentWatermark(int part) {
    this.part = part;
  }

  @Override
  public Long call() {
    if (!known) {
      TaskContext task = TaskContext.get();
      String text = task == null ? null : task.getLocalProperty("penstock.watermark");
      if (text == null) {
        throw TaskError.withoutContext("penstock.watermark");
      }
      milliseconds = text.isEmpty() ? null : Long.valueOf(text.split(" ")[part]);
      known = true;
    }
    return milliseconds;
  }
}
