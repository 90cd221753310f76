"""`lag` and `status` of a URL: a real server, the real commands, basic authentication and TLS."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters.ports import HOST, ReservedPort
from sparkmirror.config.properties import Properties
from sparkmirror.config.worker_options import BASIC_AUTHENTICATION
from sparkmirror.connect.rest.rest_settings import RestSettings, rest_settings
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.metrics.looks import ConnectorLook, StandingLook
from sparkmirror.storage.progress import Driver, PartitionState
from sparkmirror.storage.promotions import Parting, Promotion, Stage
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node
from tests.support.certificates import authority, issued
from tests.support.in_terminal import shown_in_a_terminal
from tests.support.memory_herder import MemoryHerder
from tests.support.mirror_looks import HOSTILE, SOURCE, behind, look, source
from tests.support.rest_serving import server, serving

MANY: Final = 12_000
MODULE: Final = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"


class Mirror:
    """`looks` may be changed at will."""

    def __init__(self) -> None:
        self.looks: list[ConnectorLook] = []
        self.times = iter(range(0, 10**9, 2))

    def view(self) -> CurrentView:
        """One that is recreated for each request."""
        return CurrentView(
            lambda: Node("node-1", "1.0"), lambda: self.looks, clock=lambda: float(next(self.times))
        )


@pytest.fixture(scope="module")
def mirror() -> Mirror:
    return Mirror()


@pytest.fixture(scope="module")
def url(mirror: Mirror) -> Iterator[str]:
    with serving(MemoryHerder(), view=mirror.view()) as url:
        yield url


def printed(capsys: pytest.CaptureFixture[str], words: Sequence[str], code: int) -> str:
    assert main(words) == code, capsys.readouterr()
    return capsys.readouterr().out


def test_the_exit_code_tells_whether_it_has_caught_up(
    mirror: Mirror, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.looks = [source(look("orders"), look("orders", 1))]
    assert printed(capsys, ["lag", url], 0) == "a->b: caught up, 2 partitions\n"
    mirror.looks = [source(look("orders"), behind("payments", 0, 70, 5))]
    text = printed(capsys, ["lag", url], 1)
    assert "a->b: 70 records behind, in 1 of 2 partitions" in text
    assert text.splitlines()[2].split(maxsplit=4) == ["payments-0", "1070", "1000", "70", "2 min"]
    assert printed(capsys, ["lag", url, "--topic", "ord.*"], 0)
    assert printed(capsys, ["lag", url, "--max-records", "70"], 0)
    assert printed(capsys, ["lag", url, "--max-seconds", "89"], 1)
    assert printed(capsys, ["lag", url, "--max-seconds", "90"], 0)
    mirror.looks = [source(look("orders"), look("payments", 0, {"lag": 7}, lag_s=4.0))]
    assert printed(capsys, ["lag", url], 0) == "a->b: caught up, 2 partitions, 7 records on the way\n"
    assert printed(capsys, ["lag", url, "--max-seconds", "0"], 1)


def test_promoted_topics_are_named_and_have_no_lag(
    mirror: Mirror, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    promoted = {"orders": Promotion(Stage.PROMOTED, 1, b"", {0: Parting(900, 905), 1: Parting(7, 7)})}
    mirror.looks = [source(behind("orders", 0, 70, 5), look("pages"), promoted=promoted)]
    assert printed(capsys, ["lag", url], 0) == (
        "a->b: caught up, 1 partition\n  orders: promoted, parted at offsets 0: 900, 1: 7\n"
    )
    rows = printed(capsys, ["status", url], 0)
    assert "orders  2           -    promoted, parted at offsets 0: 900, 1: 7" in rows
    (flow,) = json.loads(printed(capsys, ["status", url, "-o", "json"], 0))
    assert (flow["lag_records"], flow["promoted"]["orders"]["partings"]) == (0, {"0": 900, "1": 7})


def test_what_is_unknown_is_no_lag_of_0(mirror: Mirror, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    mirror.looks = [source(look("orders"), report_age_s=75.0)]
    (flow,) = json.loads(printed(capsys, ["lag", url, "-o", "json"], 2))
    assert (flow["unknown_partitions"], flow["partitions"][0]["records"]) == (1, None)
    assert "unknown: reports are read from the target" in flow["partitions"][0]["why"]
    mirror.looks = [StandingLook(Flow(Alias("a"), Alias("b")), SOURCE, "source", None, "paused")]
    assert "a->b: paused: resume the connector to continue" in printed(capsys, ["lag", url], 1)
    mirror.looks = []
    assert main(["lag", url]) == 2
    assert "has no flow now (it has: none)" in capsys.readouterr().err


def test_waiting_ends_when_it_has_caught_up(
    mirror: Mirror, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.looks = [source(behind("payments", 0, 70, 5))]
    assert printed(capsys, ["lag", url, "--wait", "--timeout", "1"], 1)
    mirror.looks = [source(look("payments"))]
    assert printed(capsys, ["lag", url, "--wait"], 0)


def test_all_partitions_are_read_however_many_there_are(
    mirror: Mirror, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.looks = [source(*(look("many", number) for number in range(MANY)))]
    assert printed(capsys, ["lag", url], 0) == f"a->b: caught up, {MANY:,} partitions\n"


def test_the_status_has_topics_failures_and_the_process(
    mirror: Mirror, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {"state": PartitionState.FAILED, "error": "no right to WRITE", "lag": 3}
    mirror.looks = [
        source(look("orders"), look("orders", 1, failed), look("pages"), driver=Driver("vm", 7, 0.0))
    ]
    assert printed(capsys, ["status", url], 1).splitlines() == [
        "a->b: action required: no right to WRITE",
        "FLOW  TOPIC   PARTITIONS  LAG  STATE",
        "a->b  orders  2           3    action required",
        "a->b  pages   1           0    caught up",
        "",
        (
            "a->b: action required, 3 records to copy in 3 partitions, "
            "process 7 on vm, running since 1970-01-01 00:00:00+00:00"
        ),
        "  orders-1: no right to WRITE",
    ]
    (flow,) = json.loads(printed(capsys, ["status", "--url", url, "-o", "json"], 1))
    assert (flow["state"], flow["failed"]) == ("action required", {"orders-1": "no right to WRITE"})
    mirror.looks = [source(look("orders"), behind("pages", 0, 5, -3))]
    assert printed(capsys, ["status", url], 0)
    mirror.looks = [source(look("orders"), report_age_s=75.0)]
    assert printed(capsys, ["status", url], 2)


def test_hostile_names_and_errors_are_printed_in_lines_of_their_own(
    mirror: Mirror, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = [{"state": PartitionState.FAILED, "error": text, "lag": 1} for text in HOSTILE]
    mirror.looks = [source(*(look(name, 0, error) for name, error in zip(HOSTILE, errors, strict=True)))]
    for command in ("lag", "status"):
        text = printed(capsys, [command, url], 1)
        assert not any(char in text for char in "\u202e\u202c\u2028\r\x1b")
        assert "x" * 249 in text
        (flow,) = json.loads(printed(capsys, [command, url, "-o", "json"], 1))
        key = "partitions" if command == "lag" else "topics"
        assert {it["topic"] for it in flow[key]} == set(HOSTILE)


@pytest.mark.parametrize("command", ["lag", "status"])
def test_what_is_no_mirror_is_said(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(MemoryHerder()) as other:
        assert main([command, other]) == 2
        assert "answers with no /mirror: is it a sparkmirror" in capsys.readouterr().err
    assert main([command, other]) == 2
    assert "no server responds" in capsys.readouterr().err


def test_credentials_and_the_ca_are_options(
    mirror: Mirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.looks = [source(look("orders"))]
    with server(MemoryHerder(), _secured(tmp_path), view=mirror.view()) as started:
        url, password = started.advertised_url, tmp_path / "password"
        login = ["--user", "ops", "--password-file", str(password), "--ca", f"{tmp_path}/ca.pem"]
        for command in ("lag", "status"):
            password.write_text("right")
            assert printed(capsys, [command, url, *login], 0)
            password.write_text("wrong")
            assert main([command, url, *login]) == 2
            assert "401 Unauthorized" in capsys.readouterr().err
            assert main([command, url]) == 2
            assert "TLS fails" in capsys.readouterr().err
        password.write_text("right")
        assert b"caught up" in shown_in_a_terminal(["top", url, *login], b"orders")
        password.write_text("wrong")
        shown_in_a_terminal(["top", url, *login], b"401 Unauthorized", keys=b"", code=2)


def _secured(folder: Path) -> RestSettings:
    """HTTPS, and one user."""
    (folder / "users").write_text("ops=right\n")
    (folder / "jaas.conf").write_text(f'KafkaConnect {{ {MODULE} required file="{folder}/users"; }};')
    ca = authority("authority")
    identity = issued(ca, "localhost", HOST)
    (folder / "ca.pem").write_text(ca.certificate_pem())
    (folder / "both.pem").write_text(identity.key_pem() + identity.certificate_pem())
    properties = {
        "listeners": f"https://{HOST}:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "both.pem"),
        "rest.extension.classes": BASIC_AUTHENTICATION[0],
        "java.security.auth.login.config": str(folder / "jaas.conf"),
    }
    return rest_settings(Properties(properties), {})


def test_top_shows_tables_in_a_terminal_until_it_is_quit(mirror: Mirror, url: str) -> None:
    mirror.looks = [source(look("orders"), behind("payments", 0, 70, 5))]
    assert b"catching up" in shown_in_a_terminal(["top", url], b"payments")


def test_top_says_why_nothing_can_be_read_of_the_clusters_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    port = ReservedPort()
    address = f"{HOST}:{port.number}"
    file.write_text(
        f"clusters=a,b\na->b.enabled=true\na.bootstrap.servers={address}\nb.bootstrap.servers={address}\n"
    )
    try:
        shown_in_a_terminal(["top", str(file)], b"look at the mirror failed: ")
    finally:
        port.release()


def test_top_needs_a_terminal_and_one_mirror(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", url]) == 2
    assert "needs a terminal" in capsys.readouterr().err
