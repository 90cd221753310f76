from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.offsets.wire_records import Heartbeat
from sparkmirror.settings.heartbeat import heartbeat_record


def test_a_heartbeat_carries_its_time_twice() -> None:
    key, value, timestamp_ms = heartbeat_record(Flow(Alias("A"), Alias("B")), 1700000000000)
    assert (key.hex(), value.hex()) == ("000141000142", "00000000018bcfe56800")
    assert timestamp_ms == Heartbeat.decode(key, value).timestamp_ms == 1700000000000
