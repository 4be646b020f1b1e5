#!/bin/bash
# The entry point of an assembled Spark image. It does what Spark's scheduler expects of the official one: starts an executor from the
# variables that the scheduler sets, starts a driver by spark-submit, and executes any other command as it is.
set -euo pipefail

# Spark's scheduler numbers the JVM options from 0.
java_options=()
for ((number = 0; ; number++)); do
  variable="SPARK_JAVA_OPT_${number}"
  [[ -v "${variable}" ]] || break
  java_options+=("${!variable}")
done

# Configuration first, then what the job adds, then Spark's jars, and the working folder last.
class_path="${SPARK_CONF_DIR:-${SPARK_HOME}/conf}"
[[ -z "${HADOOP_CONF_DIR:-}" ]] || class_path+=":${HADOOP_CONF_DIR}"
[[ -z "${SPARK_CLASSPATH:-}" ]] || class_path+=":${SPARK_CLASSPATH}"
class_path+=":${SPARK_HOME}/jars/*"
[[ -z "${SPARK_EXTRA_CLASSPATH:-}" ]] || class_path+=":${SPARK_EXTRA_CLASSPATH}"
class_path+=":${PWD}"

case "${1:-}" in
  executor)
    exec /usr/bin/tini -s -- "${JAVA_HOME}/bin/java" "${java_options[@]}" \
      "-Xms${SPARK_EXECUTOR_MEMORY}" "-Xmx${SPARK_EXECUTOR_MEMORY}" -cp "${class_path}" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "${SPARK_DRIVER_URL}" \
      --executor-id "${SPARK_EXECUTOR_ID}" \
      --cores "${SPARK_EXECUTOR_CORES}" \
      --app-id "${SPARK_APPLICATION_ID}" \
      --hostname "${SPARK_EXECUTOR_POD_IP}" \
      --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID}" \
      --podName "${SPARK_EXECUTOR_POD_NAME}"
    ;;
  driver)
    shift
    exec /usr/bin/tini -s -- "${SPARK_HOME}/bin/spark-submit" --deploy-mode client \
      --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS}" \
      --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=${SPARK_DRIVER_BIND_ADDRESS}" "$@"
    ;;
  *)
    exec "$@"
    ;;
esac
