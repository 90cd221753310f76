"""TopicWriter on a cluster in memory whose quotas throttle, in virtual time."""

from contextlib import closing
from dataclasses import replace

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.data.topic_log import TopicWriter
from tests.memory.client_run import client_run

STATE = "state"
VALUE = b"v" * 5_000


def test_a_write_whose_throttle_times_are_longer_than_it_may_take_succeeds() -> None:
    """It takes several requests; each but the first waits for the throttle time of the one before."""
    with client_run() as run:
        target = run.cluster("target")
        target.create(STATE)
        target.quotas.set(producer=20_000.0)
        settings = replace(run.connection(target), request_timeout_s=5.0)
        records = [LogRecord(b"%d" % number, VALUE) for number in range(500)]
        with closing(TopicWriter(settings)) as writer:
            began = run.time.time()
            assert writer.write(STATE, records) == list(range(500))
            assert run.time.time() - began > 60.0
        assert target.log(TopicPartition(STATE, 0)).end == 500
