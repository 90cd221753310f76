"""Defines the metrics of the driver's JVM, under the names that Prometheus' JMX exporter gives to a JVM's."""

from collections.abc import Iterator

from sparkmirror.metrics.family import Family
from sparkmirror.metrics.readings import JvmReading


def jvm_families(jvm: JvmReading) -> Iterator[Family]:
    """A part of memory without a limit has -1 as its most, as the exporter says."""
    for name, text, at in (
        ("used", "Memory that is used.", 0),
        ("committed", "Memory that the operating system guarantees.", 1),
        ("max", "Memory that may be used at most.", 2),
    ):
        samples = [((area,), float(its[at])) for area, its in sorted(jvm.memory.items())]
        yield Family(f"jvm_memory_{name}_bytes", f"{text} Of the driver's JVM.", ("area",), samples)
    collectors = sorted(jvm.collectors.items())
    yield Family(
        "jvm_gc_collection_seconds_count",
        "Garbage collections of the driver's JVM.",
        ("gc",),
        [((name,), its.collections) for name, its in collectors],
    )
    yield Family(
        "jvm_gc_collection_seconds_sum",
        "Seconds that garbage collections of the driver's JVM took.",
        ("gc",),
        [((name,), its.seconds) for name, its in collectors],
    )
    yield Family("jvm_threads_current", "Threads of the driver's JVM.", (), [((), jvm.threads)])
