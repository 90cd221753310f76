#!/bin/sh
# Kafka's name for MirrorMaker 2 in dedicated mode. Settings of a JVM, like KAFKA_HEAP_OPTS, mean nothing here.

if [ $# -lt 1 ]; then
  echo "USAGE: $0 [-daemon] mm2.properties"
  exit 1
fi

exec "$(dirname "$(readlink -f "$0")")/sparkmirror-run.sh" mirrorMaker run "$@"
