#!/bin/sh
# Like Kafka's own: kafka-run-class.sh CLASS [ARGUMENTS]. KAFKA_HEAP_OPTS, KAFKA_LOG4J_OPTS and KAFKA_OPTS mean the same as there.
home=$(cd "$(dirname "$0")/.." && pwd) || exit 1
# The jars themselves, in one order: the class archive serves every lab, but this very class path only.
set -- -cp "$(readlink -f "$home"/libs/*.jar | LC_ALL=C sort | paste -s -d : -)" "$@"
archive=@CLASS_ARCHIVE@
if [ -f "$archive" ]; then set -- "-XX:SharedArchiveFile=$archive" -Xshare:auto "$@"; fi
# An OutOfMemoryError ends the process. Otherwise only the thread that asked for memory dies, such as the one that listens for changes of
# configurations, and the process lives on without it. Java warns on standard error: an archive that does not fit must not spoil what a
# tool prints.
# shellcheck disable=SC2086 # options are words
exec @JAVA@ -XX:+ExitOnOutOfMemoryError -XX:+UseSerialGC -XX:TieredStopAtLevel=1 ${KAFKA_HEAP_OPTS:--Xmx256m} \
  -Xlog:disable -Xlog:all=warning:stderr \
  ${KAFKA_LOG4J_OPTS:--Dlog4j.configuration=file:"$home"/config/tools-log4j.properties} ${KAFKA_OPTS:-} "$@"
