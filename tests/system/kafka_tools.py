"""Runs Kafka's own command-line tools, whose jars come from Maven Central, once."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from sparkmirror.java.find_java import find_java
from sparkmirror.java.folders import cache_folder, locked
from sparkmirror.java.ivy import Ivy, Module
from sparkmirror.java.jars import KAFKA_VERSION

TIMEOUT_S: Final = 120.0
_FAST_START: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def tool_jars() -> Path:
    """Their folder. Ivy checks them against Maven Central's sums."""
    home = cache_folder() / "jars"
    folder = home / f"kafka-tools-{KAFKA_VERSION}"
    with locked(home / f"{folder.name}.lock", lambda: None) as lock:
        if not folder.is_dir():
            work = folder.with_name(f"{folder.name}.partial")
            work.mkdir(exist_ok=True)
            module = Module("org.apache.kafka", "kafka-tools", KAFKA_VERSION)
            ivy = Ivy.of_pyspark(find_java())
            ivy.retrieve([module], work, keep_open=lock, on_line=lambda _: None).rename(folder)
            shutil.rmtree(work)
    return folder


def printed(main_class: str, *arguments: str) -> bytes:
    """What the tool of this class writes to stdout, whatever its exit code says."""
    command = [find_java().executable, *_FAST_START, "-cp", f"{tool_jars()}/*", main_class, *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_S).stdout
