import pytest

from bench.versions import report


def test_figures_are_compared_within_their_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    """The machine was half as fast in the second pair, and it does not matter."""
    report("plain", [({"s": 1.0}, {"s": 1.1}), ({"s": 2.0}, {"s": 2.2})])
    assert capsys.readouterr().out == (
        "plain: s: 1.500 before, 1.650 now; ratio 1.100, difference 0.150 (0.100 to 0.200)\n"
    )
