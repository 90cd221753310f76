import argparse

import pytest

from sparkmirror.cli.run import _address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9404", ("", 9404)),
        (":9404", ("", 9404)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:9404", ("::1", 9404)),
        ("metrics.example:65535", ("metrics.example", 65535)),
    ],
)
def test_metrics_addresses_are_parsed(text: str, address: tuple[str, int]) -> None:
    assert _address(text) == address


@pytest.mark.parametrize("text", ["", "x", "65536", "-1", "localhost", "localhost:", "²"])
def test_invalid_metrics_addresses_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="9404"):
        _address(text)
