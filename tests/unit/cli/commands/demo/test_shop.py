import pytest

from sparkmirror.cli.commands.demo.shop import Throttle
from sparkmirror.cli.main import main


@pytest.mark.parametrize("rate", [1, 7, 200, 5000])
def test_the_rate_is_exact_over_uneven_ticks(rate: int) -> None:
    throttle = Throttle(rate, started=100.0)

    written = sum(throttle.due(100.0 + second) for second in (0.013, 0.014, 0.4, 0.41, 0.9, 1.0, 1.5, 2.0))

    assert written in {2 * rate, 2 * rate - 1}


def test_nothing_is_due_before_the_first_record() -> None:
    throttle = Throttle(10, started=0.0)

    assert [throttle.due(0.05), throttle.due(0.09), throttle.due(0.11)] == [0, 0, 1]


def test_a_backlog_of_more_than_a_second_is_dropped() -> None:
    throttle = Throttle(1000, started=0.0)

    assert throttle.due(60.0) == 1000
    assert throttle.due(60.1) == 100


def test_a_shop_names_the_cluster_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--shop", "127.0.0.1:1"]) == 2
    assert "can't connect to 127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize("server", ["west", ":9092", "west:", "west:kafka"])
def test_a_shop_needs_a_host_and_a_port(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--shop", server])
    assert ended.value.code == 2
    assert f"'{server}' is not HOST:PORT" in capsys.readouterr().err
