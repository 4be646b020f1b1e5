package io.penstock.stream;

import com.fasterxml.jackson.annotation.JsonIgnore;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;

/**
 * What one attempt of a task counted at one operator, and the side-output rows that left the stream there.
 *
 * <p>Any successful attempt is right: all of them see the same rows, because the offset log fixes the records of the micro-batch.
 */
public final class Passed implements Serializable {
  private static final long serialVersionUID = 1L;

  final String run;
  final long batch;
  final String operator;
  final int partition;
  /** Rows that were counted here, those that stayed included. */
  long rows;
  /** Split -> its records and their greatest event time. */
  final Map<Integer, Split> splits = new HashMap<>();
  /** Tag -> its rows. */
  final Map<String, Tagged> tags = new HashMap<>();
  /** The side-output rows, a JSON object each; null where they are in an object of the checkpoint. */
  @JsonIgnore byte[] lines;
  /** URI of that object; null where there is none. */
  String staged;

  Passed(String run, long batch, String operator, int partition) {
    this.run = run;
    this.batch = batch;
    this.operator = operator;
    this.partition = partition;
  }

  /** The same for all attempts of a task. */
  String task() {
    return run + "/" + batch + "/" + operator + "/" + partition;
  }

  /** The records of a split, such as a partition of a topic. */
  static final class Split implements Serializable {
    private static final long serialVersionUID = 1L;
    long rows;
    /** In epoch milliseconds; {@link Long#MIN_VALUE} where no record has an event time. */
    long greatestMs = Long.MIN_VALUE;
  }

  /** The rows with a tag. */
  static final class Tagged implements Serializable {
    private static final long serialVersionUID = 1L;
    long rows;
    /** Those that do not come from an offset of a topic. */
    long unlocated;
    /** Whether the rows themselves are kept, for a side output. */
    boolean kept;
  }
}
