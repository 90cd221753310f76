import pytest

from sparkmirror.cli.command_runner import build_parser


def metrics_address(text: str) -> tuple[str, int]:
    address: tuple[str, int] = (
        build_parser().parse_args(["run", "mm2.properties", f"--metrics-port={text}"]).metrics_port
    )
    return address


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
    assert metrics_address(text) == address


@pytest.mark.parametrize("text", ["", "x", "65536", "-1", "localhost", "localhost:", "²"])
def test_invalid_metrics_addresses_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        metrics_address(text)
    assert ended.value.code == 255
    assert "for example 9404 or 127.0.0.1:9404" in capsys.readouterr().err
