package io.penstock.stream;

import com.fasterxml.jackson.core.io.JsonStringEncoder;

/** An error of a task in the form in which the driver recognizes it in Spark's message. */
final class TaskError extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private TaskError(String code, String path, String given, String need, String fix, Throwable cause) {
    super(String.format(
        "penstock-error {\"code\": \"%s\", \"path\": \"%s\", \"given\": \"%s\", \"need\": \"%s\", \"fix\": \"%s\"}",
        code, path, new String(JsonStringEncoder.getInstance().quoteAsString(given)), need, fix), cause);
  }

  static TaskError withoutContext(String property) {
    return new TaskError(
        "JOB-084", "task", "none", "the local property " + property + ", by which a task knows its micro-batch",
        "run the block in a job's query, and call no action on its DataFrame outside the query's thread", null);
  }

  static TaskError unreachable(String object, Throwable cause) {
    return new TaskError(
        "JOB-009", object, String.valueOf(cause), "write access", "check the checkpoint bucket and the job's permissions", cause);
  }
}
