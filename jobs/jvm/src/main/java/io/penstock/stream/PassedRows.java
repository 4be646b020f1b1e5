package io.penstock.stream;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.WeakHashMap;
import java.util.stream.Collectors;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
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
   * Registers the SQL functions of an operator, {@code <number>/<name>}: {@code penstock_count_<number>(split, milliseconds)}, which is
   * true, and {@code penstock_leave_<number>(tag, reason, record)}, which is false. Both are non-deterministic to Spark, which therefore
   * calls them once for each row.
   */
  public void register(String operator) {
    String number = operator.split("/")[0];
    register("penstock_count_" + number, functions.udf(new Count(operator, this), DataTypes.BooleanType));
    register("penstock_leave_" + number, functions.udf(new Leave(operator, this), DataTypes.BooleanType));
  }

  /**
   * Registers the SQL functions {@code penstock_current_ms()} and {@code penstock_cleared_ms()}, the current watermark and up to where state
   * may have been cleared, and {@code penstock_batch_ms()}, the micro-batch's own timestamp; see {@link MicroBatchTime}.
   */
  public void registerTimes() {
    register("penstock_current_ms", functions.udf(new MicroBatchTime("penstock.watermark", 0), DataTypes.LongType));
    register("penstock_cleared_ms", functions.udf(new MicroBatchTime("penstock.watermark", 1), DataTypes.LongType));
    register("penstock_batch_ms", functions.udf(new MicroBatchTime("penstock.batchTime", 0), DataTypes.LongType));
  }

  private void register(String name, UserDefinedFunction function) {
    session.get().udf().register(name, function.asNondeterministic());
  }

  /**
   * The counts of a micro-batch as JSON: {@code {"operators": {operator: {"rows": n, "splits": {split: [rows, greatest or null]},
   * "tags": {tag: [rows, unlocated, kept]}}}, "staged": [URI]}}.
   */
  public synchronized String counts(String run, long batch) {
    Map<String, Passed> operators = new TreeMap<>();
    List<String> staged = new ArrayList<>();
    for (Passed task : of(run, batch)) {
      Passed sum = operators.computeIfAbsent(task.operator, name -> new Passed(run, batch, name, 0));
      sum.rows += task.rows;
      task.splits.forEach((number, split) -> add(sum.splits.computeIfAbsent(number, any -> new Passed.Split()), split));
      task.tags.forEach((tag, counted) -> add(sum.tags.computeIfAbsent(tag, any -> new Passed.Tagged()), counted));
      if (task.staged != null) {
        staged.add(task.staged);
      }
    }
    StringWriter text = new StringWriter();
    try (JsonGenerator json = new JsonFactory().createGenerator(text)) {
      write(json, operators, staged);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    return text.toString();
  }

  /** The side-output rows of a micro-batch that are not in objects of the checkpoint: one column, a JSON object each. */
  public synchronized Dataset<Row> lines(String run, long batch) {
    List<String> lines = of(run, batch).stream()
        .filter(task -> task.lines != null)
        .flatMap(task -> Arrays.stream(new String(task.lines, StandardCharsets.UTF_8).split("\n")))
        .collect(Collectors.toList());
    return session.get().createDataset(lines, Encoders.STRING()).toDF("line");
  }

  private List<Passed> of(String run, long batch) {
    return tasks.values().stream().filter(task -> task.batch == batch && task.run.equals(run)).collect(Collectors.toList());
  }

  private static void add(Passed.Split sum, Passed.Split more) {
    sum.rows += more.rows;
    sum.greatestMs = Math.max(sum.greatestMs, more.greatestMs);
  }

  private static void add(Passed.Tagged sum, Passed.Tagged more) {
    sum.rows += more.rows;
    sum.unlocated += more.unlocated;
    sum.kept |= more.kept;
  }

  private static void write(JsonGenerator json, Map<String, Passed> operators, List<String> staged) throws IOException {
    json.writeStartObject();
    json.writeObjectFieldStart("operators");
    for (Passed operator : operators.values()) {
      json.writeObjectFieldStart(operator.operator);
      json.writeNumberField("rows", operator.rows);
      json.writeObjectFieldStart("splits");
      for (Map.Entry<Integer, Passed.Split> split : operator.splits.entrySet()) {
        json.writeArrayFieldStart(split.getKey().toString());
        json.writeNumber(split.getValue().rows);
        if (split.getValue().greatestMs == Long.MIN_VALUE) {
          json.writeNull();
        } else {
          json.writeNumber(split.getValue().greatestMs);
        }
        json.writeEndArray();
      }
      json.writeEndObject();
      json.writeObjectFieldStart("tags");
      for (Map.Entry<String, Passed.Tagged> tag : operator.tags.entrySet()) {
        json.writeArrayFieldStart(tag.getKey());
        json.writeNumber(tag.getValue().rows);
        json.writeNumber(tag.getValue().unlocated);
        json.writeBoolean(tag.getValue().kept);
        json.writeEndArray();
      }
      json.writeEndObject();
      json.writeEndObject();
    }
    json.writeEndObject();
    json.writeArrayFieldStart("staged");
    for (String uri : staged) {
      json.writeString(uri);
    }
    json.writeEndArray();
    json.writeEndObject();
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
