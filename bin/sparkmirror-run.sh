#!/bin/sh
# Runs sparkmirror for the scripts beside this one: sparkmirror-run.sh NAME COMMAND [-daemon] [ARGUMENT...]
# It is taken from the .venv of the checkout that this is in, else from PATH. With -daemon it runs in the
# background, and its output goes to $LOG_DIR/NAME.out (by default below logs/), as with Kafka's scripts.

name=$1
command=$2
shift 2
base=$(cd "$(dirname "$0")/.." && pwd)

if [ -x "$base/.venv/bin/sparkmirror" ]; then
  sparkmirror=$base/.venv/bin/sparkmirror
elif ! sparkmirror=$(command -v sparkmirror); then
  echo "sparkmirror is neither in $base/.venv (make setup) nor on PATH (pip install . in the checkout)" >&2
  exit 127
fi

if [ "$1" = "-daemon" ]; then
  shift
  logs=${LOG_DIR:-$base/logs}
  mkdir -p "$logs" || exit 1
  nohup "$sparkmirror" "$command" "$@" > "$logs/$name.out" 2>&1 < /dev/null &
  exit 0
fi

exec "$sparkmirror" "$command" "$@"
