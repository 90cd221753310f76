"""The machine and the versions that a benchmark ran on."""

import os
import platform
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    cpu_model: str
    cores: int
    memory_gb: float
    kernel: str
    python: str
    java: str
    spark: str
    kafka: str
    sparkmirror: str


def describe(java: str, kafka_version: str) -> Machine:
    return Machine(
        cpu_model=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        java=_java_version(java),
        spark=version("pyspark"),
        kafka=kafka_version,
        sparkmirror=version("sparkmirror"),
    )


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def _java_version(java: str) -> str:
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    return answer.stderr.splitlines()[1].strip()
