package io.penstock.stream;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import scala.Tuple2;

/**
 * One operator in one attempt of a task: counts its rows and writes those that leave.
 *
 * <p>A few rows go to the driver with the task's result. Where they are more than {@link #INLINE_BYTES}, they go to an object of the
 * checkpoint, so that a topic that is all malformed does not fill the driver's memory.
 */
final class TaskRows {
  static final int INLINE_BYTES = 64 * 1024;
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, TaskRows> RUNNING = new ConcurrentHashMap<>();

  private final Passed passed;
  private final Set<String> sideOutputs;
  private final String object;
  private final ByteArrayOutputStream lines = new ByteArrayOutputStream();
  private FSDataOutputStream staged;

  private TaskRows(TaskContext task, String operator, String batch) {
    // The job group of a query's jobs is its run id.
    String run = property("spark.jobGroup.id");
    passed = new Passed(run, Long.parseLong(batch), operator, task.partitionId());
    sideOutputs = Set.of(property("penstock.sideOutputs").split(","));
    object = String.format(
        "%s/penstock/aside/%s/%s/%s/%s-%05d-%d.json", property("penstock.checkpoint"), batch, property("penstock.fencingToken"),
        run, operator.split("/")[0], task.partitionId(), task.taskAttemptId());
  }

  /** That of the current task. */
  static TaskRows of(String operator, PassedRows all) {
    String batch = property("streaming.sql.batchId");
    TaskContext task = TaskContext.get();
    return RUNNING.computeIfAbsent(task.taskAttemptId() + operator, key -> {
      TaskRows rows = new TaskRows(task, operator, batch);
      task.addTaskCompletionListener(ended -> {
        RUNNING.remove(key);
        rows.close(ended.isFailed() || ended.isInterrupted());
        all.add(rows.passed);
      });
      return rows;
    });
  }

  /** What the driver passes to the current task. */
  static String property(String name) {
    TaskContext task = TaskContext.get();
    String value = task == null ? null : task.getLocalProperty(name);
    if (value == null) {
      throw TaskError.withoutContext(name);
    }
    return value;
  }

  synchronized void count(Integer split, Long greatestMs) {
    passed.rows++;
    if (split != null) {
      Passed.Split counted = passed.splits.computeIfAbsent(split, any -> new Passed.Split());
      counted.rows++;
      counted.greatestMs = greatestMs == null ? counted.greatestMs : Math.max(counted.greatestMs, greatestMs);
    }
  }

  synchronized void leave(String tag, String reason, Row record) {
    passed.rows++;
    Passed.Tagged tagged = passed.tags.computeIfAbsent(tag, any -> new Passed.Tagged());
    tagged.rows++;
    if (record == null) {
      return;
    }
    tagged.unlocated += record.isNullAt(3) ? 1 : 0;
    if (sideOutputs.contains(tag)) {
      tagged.kept = true;
      try {
        keep(tag, reason, record);
      } catch (IOException error) {
        throw TaskError.unreachable(object, error);
      }
    }
  }

  private void keep(String tag, String reason, Row record) throws IOException {
    write(tag, reason, record);
    if (staged == null && lines.size() > INLINE_BYTES) {
      staged = new Path(object).getFileSystem(hadoop()).create(new Path(object), true);
    }
    if (staged != null) {
      lines.writeTo(staged);
      lines.reset();
    }
  }

  private static Configuration hadoop() {
    Configuration conf = new Configuration();
    for (Tuple2<String, String> entry : SparkEnv.get().conf().getAllWithPrefix("spark.hadoop.")) {
      conf.set(entry._1(), entry._2());
    }
    return conf;
  }

  /** The record's fields: source, topic, partition, offset, timestamp in epoch microseconds, key, value. */
  private void write(String tag, String reason, Row record) throws IOException {
    Map<String, Object> fields = new HashMap<>();
    for (int index = 0; index < record.size(); index++) {
      if (!record.isNullAt(index)) {
        fields.put(record.schema().fieldNames()[index], record.get(index));
      }
    }
    Map<String, Object> row = new HashMap<>(Map.of("_tag", tag, "_record", fields));
    row.put("_reason", reason);
    lines.write(JSON.writeValueAsBytes(row));
    lines.write('\n');
  }

  private synchronized void close(boolean failed) {
    try {
      if (staged != null) {
        staged.close();
        passed.staged = object;
      } else if (lines.size() > 0) {
        passed.lines = lines.toByteArray();
      }
    } catch (IOException error) {
      if (!failed) {
        throw TaskError.unreachable(object, error);
      }
    }
  }
}
