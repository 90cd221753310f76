from sparkmirror.domain.network import host_port


def test_ipv6_stands_in_brackets_as_kafkas_tools_take_it() -> None:
    assert host_port("::1", 29092) == "[::1]:29092"
    assert host_port("east-1", 9092) == "east-1:9092"
