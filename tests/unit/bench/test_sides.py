from dataclasses import replace

from bench.relay import shares
from bench.sides import Mirroring, Side, properties, relay_command
from bench.workloads import PARTITIONS

MIRRORING = Mirroring("run1", "localhost:1", "localhost:2", "data-1kb", 2)


def test_both_mirrors_get_the_same_settings() -> None:
    assert properties(MIRRORING, Side.OURS) == properties(MIRRORING, Side.MM2)


def test_only_the_tuned_side_gets_more() -> None:
    plain, tuned = (set(properties(MIRRORING, side).splitlines()) for side in (Side.MM2, Side.MM2_TUNED))
    assert tuned - plain == {
        "run1->target.producer.override.batch.size = 327680",
        "run1->target.producer.override.linger.ms = 100",
        "run1->target.consumer.fetch.max.bytes = 52428800",
        "run1->target.consumer.max.partition.fetch.bytes = 1048576",
        "run1->target.consumer.max.poll.records = 500",
        "target.offset.flush.timeout.ms = 10000",
    }
    assert plain < tuned


def test_the_target_topic_has_the_default_policys_name() -> None:
    assert MIRRORING.target_topic("data-1kb") == "run1.data-1kb"


def test_a_workloads_settings_are_added() -> None:
    plain, more = properties(MIRRORING, Side.OURS), properties(MIRRORING, Side.OURS, {"a": "1"})
    assert more == f"{plain}a = 1\n"


def test_both_ends_get_what_their_clients_need() -> None:
    secured = replace(MIRRORING, security={"security.protocol": "SSL"})
    more = set(properties(secured, Side.MM2).splitlines()) - set(properties(MIRRORING, Side.MM2).splitlines())
    assert more == {"run1.security.protocol = SSL", "target.security.protocol = SSL"}


def test_relay_processes_get_every_partition_once_as_tasks_do() -> None:
    assert sorted(number for share in shares(3) for number in share) == list(range(PARTITIONS))
    command = relay_command(MIRRORING, "bench-latency")
    assert command[command.index("--tasks") + 1] == str(MIRRORING.tasks_max)
    assert command[command.index("--target-topic") + 1] == "run1.bench-latency"
