#!/bin/sh
# Kafka's name for a Connect worker. Settings of a JVM, like KAFKA_HEAP_OPTS, mean nothing here.

if [ $# -lt 1 ]; then
  echo "USAGE: $0 [-daemon] connect-distributed.properties"
  exit 1
fi

exec "$(dirname "$(readlink -f "$0")")/sparkmirror-run.sh" connectDistributed worker "$@"
