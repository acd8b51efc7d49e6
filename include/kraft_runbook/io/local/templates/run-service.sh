#!/bin/sh
# run-service.sh SERVICE METRICS_ADDRESS CLASS CONFIG: what supervisor runs, in the foreground, and stops by SIGTERM.
# Each start leaves a line in starts.log: epoch seconds, service, pid (exec keeps it).
# The home itself, where this was called through a node's link to it.
home=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
service=$1 metrics=$2 class=$3 config=$4
echo "$(date +%s.%N) $service $$" >>"$home/../starts.log" || exit 1
echo "run-service.sh: $service starts as pid $$" # in its log: what follows is of this process
KAFKA_LOG4J_OPTS="-Dkafka.logs.dir=$(dirname "$config") -Dlog4j.configuration=file:$home/config/log4j.properties"
for log4j2 in "$home"/libs/log4j-core-2.*.jar; do # Kafka 4
  if [ -e "$log4j2" ]; then KAFKA_LOG4J_OPTS="-Dlog4j2.configurationFile=$home/config/log4j2.properties"; fi
done
if [ "$metrics" != none ]; then
  KAFKA_OPTS="-javaagent:$home/agent/jmx_prometheus_javaagent.jar=$metrics:$home/config/jmx-exporter.yaml"
fi
if [ -e "$(dirname "$config")/jaas.conf" ]; then # a secured lab's
  KAFKA_OPTS="$KAFKA_OPTS -Djava.security.auth.login.config=$(dirname "$config")/jaas.conf"
fi
export KAFKA_LOG4J_OPTS KAFKA_OPTS
exec "$home/bin/kafka-run-class.sh" "$class" "$config"
