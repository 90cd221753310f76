"""Measures the CPU that thousands of nearly quiet partitions take."""

import random
import threading
import time
from functools import partial

from confluent_kafka import Producer

from bench.background import in_background
from bench.bed import Bed
from bench.idle import Quiet, followed, observe
from bench.plan import Grown
from bench.results import IdleRun
from bench.workloads import GROWTH

TRICKLE_RECORDS_PER_S = 10
_SETTLE_S = 10.0


def quiet(bed: Bed, grown: Grown) -> IdleRun:
    """TRICKLE_RECORDS_PER_S records arrive in partitions taken at random."""
    partitions = Quiet(GROWTH, grown.partitions)
    with followed(bed, partitions) as mirror, in_background(partial(_trickle, bed, partitions)):
        time.sleep(_SETTLE_S)
        return observe(mirror, grown.partitions, grown.seconds)


def _trickle(bed: Bed, partitions: Quiet, enough: threading.Event) -> None:
    dice = random.Random(1)
    producer = Producer({"bootstrap.servers": bed.source.bootstrap, "linger.ms": 0, "log_level": 2})
    while not enough.wait(1 / TRICKLE_RECORDS_PER_S):
        producer.produce(
            dice.choice(partitions.topics), b"more", partition=dice.randrange(partitions.in_each)
        )
        producer.poll(0)
    producer.flush(10)
