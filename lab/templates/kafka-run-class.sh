#!/bin/sh
# Like Kafka's own: kafka-run-class.sh CLASS [ARGUMENTS]. KAFKA_HEAP_OPTS, KAFKA_LOG4J_OPTS and KAFKA_OPTS mean the same as there.
home=$(cd "$(dirname "$0")/.." && pwd) || exit 1
# Without memory it ends. Otherwise only the thread that asked for memory dies, such as the one that listens for changes of configurations,
# and the process lives on without it.
# shellcheck disable=SC2086 # options are words
exec @JAVA@ ${KAFKA_HEAP_OPTS:--Xmx256m} -XX:+ExitOnOutOfMemoryError -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
  ${KAFKA_LOG4J_OPTS:--Dlog4j.configuration=file:"$home"/config/tools-log4j.properties} ${KAFKA_OPTS:-} \
  -cp "$home/libs/*" "$@"
