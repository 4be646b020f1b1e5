package io.penstock.stream;

import com.fasterxml.jackson.annotation.JsonAutoDetect.Visibility;
import com.fasterxml.jackson.annotation.PropertyAccessor;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.api.java.UDF3;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.AccumulatorV2;

/**
 * What the tasks of the current micro-batch counted, and the side-output rows that they took out of the stream: one successful attempt of
 * each task.
 *
 * <p>Spark merges the accumulators of successful attempts only, once more for every task that runs again (after a lost executor, a fetch
 * failure, or speculatively). So what a task passed replaces what an earlier attempt of it passed; nothing is added up twice.
 */
public final class PassedRows extends AccumulatorV2<Passed, Map<String, Passed>> {
  private static final long serialVersionUID = 1L;
  private static final ObjectMapper JSON = new ObjectMapper().setVisibility(PropertyAccessor.FIELD, Visibility.ANY);
  // By identity: a session has no equality of its own.
  private static final Map<SparkSession, PassedRows> OF_SESSIONS = new WeakHashMap<>();

  private final Map<String, Passed> tasks = new HashMap<>();
  // Weak: the map above must not keep the sessions of jobs that have ended.
  private transient WeakReference<SparkSession> session;

  /** The accumulator of a session: those of several jobs in one application count, and are emptied, apart. */
  public static synchronized PassedRows of(SparkSession session) {
    return OF_SESSIONS.computeIfAbsent(session, key -> {
      PassedRows rows = new PassedRows();
      rows.session = new WeakReference<>(key);
      key.sparkContext().register(rows);
      return rows;
    });
  }

  /**
   * Registers the SQL functions of an operator, {@code <number>/<name>}: {@code penstock_count_<number>(split, milliseconds)} and
   * {@code penstock_leave_<number>(tag, reason, record)}. Both are non-deterministic to Spark, which therefore calls them once for each row.
   */
  public void register(String operator) {
    String number = operator.split("/")[0];
    Pass pass = new Pass(operator, this);
    register("penstock_count_" + number, functions.udf((UDF2<Integer, Long, Boolean>) pass, DataTypes.BooleanType));
    register("penstock_leave_" + number, functions.udf((UDF3<String, String, Row, Boolean>) pass, DataTypes.BooleanType));
  }

  /** Registers the SQL function of a time of the micro-batch, a part of a local property; see {@link MicroBatchTime}. */
  public void registerTime(String name, String property, int part) {
    register(name, functions.udf(new MicroBatchTime(property, part), DataTypes.LongType));
  }

  private void register(String name, UserDefinedFunction function) {
    session.get().udf().register(name, function.asNondeterministic());
  }

  /** What the tasks of a micro-batch counted: an array of JSON with the fields of {@link Passed}. */
  public synchronized String counts(String run, long batch) throws IOException {
    return JSON.writeValueAsString(of(run, batch));
  }

  /** The side-output rows of a micro-batch that are not in objects of the checkpoint: one column, a JSON object each. */
  public synchronized Dataset<Row> lines(String run, long batch) {
    List<String> lines = of(run, batch).stream()
        .filter(task -> task.lines != null)
        .flatMap(task -> Arrays.stream(new String(task.lines, StandardCharsets.UTF_8).split("\n")))
        .toList();
    return session.get().createDataset(lines, Encoders.STRING()).toDF("line");
  }

  private List<Passed> of(String run, long batch) {
    return tasks.values().stream().filter(task -> task.batch == batch && task.run.equals(run)).toList();
  }

  @Override
  public synchronized boolean isZero() {
    return tasks.isEmpty();
  }

  @Override
  public synchronized PassedRows copy() {
    PassedRows copy = new PassedRows();
    copy.tasks.putAll(tasks);
    return copy;
  }

  @Override
  public synchronized void reset() {
    tasks.clear();
  }

  @Override
  public synchronized void add(Passed task) {
    // An attempt whose reader stopped early passed fewer rows than one that ran to its end.
    tasks.merge(task.task(), task, (known, other) -> other.rows >= known.rows ? other : known);
  }

  @Override
  public void merge(AccumulatorV2<Passed, Map<String, Passed>> other) {
    other.value().values().forEach(this::add);
  }

  @Override
  public synchronized Map<String, Passed> value() {
    return new HashMap<>(tasks);
  }
}
