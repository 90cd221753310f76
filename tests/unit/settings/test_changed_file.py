"""Changes of a running mirror's mm2.properties: rate limits apply at once, other keys at the next start."""

from pathlib import Path
from typing import Final

import pytest

from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.policies.rate_limits import NO_LIMITS, RateLimits
from sparkmirror.settings.changed_file import ChangedFile

A, B, C = map(Alias, "ABC")
FILE: Final = """\
clusters = A, B, C
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:1
C.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
A->C.enabled = true
B->A.emit.heartbeats.enabled = true
B.producer.sasl.jaas.config = its secret
"""
LIMITED: Final = "A->B.max.bytes.per.second = 5000000\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


@pytest.fixture
def file(path: Path) -> ChangedFile:
    return ChangedFile(path)


def put(path: Path, text: str) -> None:
    """Write as editors do: the new file is another one, whatever the clock says."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    caplog.clear()
    return lines


def test_an_unchanged_file_returns_nothing(file: ChangedFile) -> None:
    assert [file.poll() for _ in range(3)] == [{}, {}, {}]


def test_changed_limits_are_returned_once(
    file: ChangedFile, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(path, FILE + LIMITED + "topic.max.bytes.per.second = orders.*=7\n")
    orders = (("orders.*", 7),)
    assert file.poll() == {}, "it may not be whole yet"
    assert file.poll() == {Flow(A, B): RateLimits(5_000_000, orders), Flow(A, C): RateLimits(None, orders)}
    assert file.poll() == {}
    put(path, FILE)
    file.poll()
    assert file.poll() == {Flow(A, B): NO_LIMITS, Flow(A, C): NO_LIMITS}
    assert warnings(caplog) == []


def test_only_the_flows_that_run_here_count(path: Path) -> None:
    file = ChangedFile(path, ["C"])
    put(path, FILE + LIMITED)
    file.poll()
    assert file.poll() == {Flow(A, C): NO_LIMITS}


def test_a_file_that_is_being_written_is_not_read(file: ChangedFile, path: Path) -> None:
    for text in ("clusters = A", FILE, FILE + LIMITED):
        put(path, text)
        assert file.poll() == {}
    assert file.poll()[Flow(A, B)] == RateLimits(5_000_000)


def test_a_file_that_is_missing_for_a_moment_is_awaited(file: ChangedFile, path: Path) -> None:
    path.unlink()
    assert [file.poll(), file.poll()] == [{}, {}]
    put(path, FILE + LIMITED)
    assert file.poll() == {}
    assert file.poll()[Flow(A, B)] == RateLimits(5_000_000)


def test_an_invalid_file_changes_nothing(
    file: ChangedFile, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(path, FILE + "A->B.max.bytes.per.second = fast\n")
    assert [file.poll() for _ in range(3)] == [{}, {}, {}]
    (line,) = warnings(caplog)
    number = FILE.count("\n") + 1
    assert line == (
        f"the file has changed and is invalid, settings stay as they are: {path}: Invalid value fast for "
        f"configuration A->B.max.bytes.per.second (line {number}): Not a number of type LONG"
    )
    put(path, FILE + LIMITED)
    file.poll()
    assert file.poll()[Flow(A, B)] == RateLimits(5_000_000), "mended"


def test_other_keys_wait_for_the_next_start_and_limits_do_not(
    file: ChangedFile, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    changed = FILE.replace("its secret", "another one") + "A->B.topics = orders\n"
    put(path, changed + LIMITED)
    file.poll()
    assert file.poll()[Flow(A, B)] == RateLimits(5_000_000)
    (line,) = warnings(caplog)
    assert line == (
        f"A->B.topics, B.producer.sasl.jaas.config changed in {path} and will take effect at the next start; "
        "only max.bytes.per.second and topic.max.bytes.per.second take effect now"
    )
    put(path, changed)
    file.poll()
    assert file.poll()[Flow(A, B)] == NO_LIMITS
    assert warnings(caplog) == [], "that was said"
    put(path, FILE)
    file.poll()
    assert file.poll()[Flow(A, B)] == NO_LIMITS
    assert warnings(caplog) == [], "nothing waits any more"


def test_many_keys_are_counted(file: ChangedFile, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(path, FILE + "".join(f"spark.key{number:02} = 1\n" for number in range(12)))
    file.poll()
    file.poll()
    (line,) = warnings(caplog)
    assert line.startswith("spark.key00, spark.key01, ")
    assert "spark.key09 and 2 more changed in" in line


@pytest.mark.parametrize("key", ["A.max.bytes.per.second", "A->B.foo.max.bytes.per.second", "A->B.topics"])
def test_a_key_that_limits_nothing_waits(
    file: ChangedFile, path: Path, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    put(path, FILE + f"{key} = 5\n")
    file.poll()
    file.poll()
    (line,) = warnings(caplog)
    assert line.startswith(f"{key} changed in ")


def test_a_missing_file_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        ChangedFile(tmp_path / "none")
