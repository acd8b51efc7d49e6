#!/bin/sh
# run-service.sh SERVICE METRICS_ADDRESS CLASS CONFIG: what supervisor runs, in the foreground, and stops by SIGTERM.
# Each start leaves a line in starts.log: epoch seconds, service, pid (exec keeps it).
home=$(cd "$(dirname "$0")/.." && pwd) || exit 1
service=$1 metrics=$2 class=$3 config=$4
echo "$(date +%s.%N) $service $$" >>"$home/../starts.log" || exit 1
echo "run-service.sh: $service starts as pid $$" # in its log: what follows is of this process
KAFKA_LOG4J_OPTS="-Dlog4j.configuration=file:$home/config/log4j.properties"
if [ "$metrics" != none ]; then
  KAFKA_OPTS="-javaagent:$home/agent/jmx_prometheus_javaagent.jar=$metrics:$home/config/jmx-exporter.yaml"
fi
export KAFKA_LOG4J_OPTS KAFKA_OPTS
exec "$home/bin/kafka-run-class.sh" "$class" "$config"
