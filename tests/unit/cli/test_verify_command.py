from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.cli.commands.verify.command import exit_code
from sparkmirror.cli.main import main
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.verify.rules_and_result import Comparison
from sparkmirror.verify.verdict import FlowVerdict, PartitionVerdict

FILE = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def test_help_names_examples_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["verify", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "exit codes:\n  0    equal\n  1    different\n  2    " in text
    assert "--flow 'us-west->us-east'" in text


@pytest.mark.parametrize("arguments", [[], ["f", "--slots", "0"], ["f", "-o", "xml"], ["f", "--nonsense"]])
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["verify", *arguments])
    assert caught.value.code == 2


def test_a_missing_file_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("sparkmirror verify: ")


def test_an_unknown_flow_names_those_there_are(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(file), "--flow", "B->A"]) == 2
    assert (
        capsys.readouterr().err
        == f"sparkmirror verify: {file} has no flow B->A that mirrors topics (it has: A->B)\n"
    )


def test_a_pattern_that_java_refuses_ends_with_2(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(file), "--topic", "("]) == 2
    assert "--topic" in capsys.readouterr().err


def verdict(comparison: Comparison, not_begun: str | None = None) -> PartitionVerdict:
    at = TopicPartition("orders", 0)
    return PartitionVerdict(at, at, comparison, not_begun=not_begun)


EQUAL = verdict(Comparison(equal=9))
NOT_BEGUN = verdict(Comparison(), "it has no stored position")
UNREADABLE = replace(EQUAL, errors=("b: no answer",))
DIFFERENT = verdict(Comparison(counts={"extra": 1}))


@pytest.mark.parametrize(
    ("found", "are_all", "code"),
    [
        ([EQUAL], True, 0),
        ([EQUAL, NOT_BEGUN], True, 3),
        ([NOT_BEGUN], True, 3),
        ([EQUAL, NOT_BEGUN], False, 2),
        ([EQUAL], False, 2),
        ([NOT_BEGUN, UNREADABLE], True, 2),
        ([NOT_BEGUN, UNREADABLE, DIFFERENT], False, 1),
    ],
)
def test_partitions_that_were_never_begun_have_a_code_of_their_own(
    found: list[PartitionVerdict], *, are_all: bool, code: int
) -> None:
    assert exit_code([FlowVerdict("A->B", found)], are_all=are_all) == code
