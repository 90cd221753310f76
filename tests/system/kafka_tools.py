"""Runs Kafka's own command-line tools, whose jars come from Maven Central, once."""

import subprocess
from typing import Final

from sparkmirror.java.find_java import find_java
from sparkmirror.java.jars import ensure_jars, kafka_tools_jars

TIMEOUT_S: Final = 120.0
_FAST_START: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def printed(main_class: str, *arguments: str) -> bytes:
    """Return what the tool of this class writes to stdout, whatever its exit code says."""
    jars = ensure_jars(kafka_tools_jars())
    command = [find_java().executable, *_FAST_START, "-cp", f"{jars}/*", main_class, *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_S).stdout
