#!/bin/bash
# Decommissions the executor of this container: SIGPWR makes Spark migrate its blocks and end. Kubernetes runs this before it stops the pod,
# and waits for it within the grace period.
set -euo pipefail

executor="$(pgrep -o -x java)"
kill -s PWR "${executor}"
while kill -0 "${executor}" 2>/dev/null; do
  sleep 1
done
