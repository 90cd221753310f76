"""The entry of the image, as a program."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from sparkmirror.container.health import place

ENTRY = (sys.executable, "-m", "sparkmirror.container.entry")


def started(
    *words: str, environ: Mapping[str, str] | None = None, tmp: Path | None = None
) -> subprocess.CompletedProcess[str]:
    known = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    known |= {} if tmp is None else {"TMPDIR": str(tmp)}
    return subprocess.run(
        [*ENTRY, *words], env={**known, **(environ or {})}, capture_output=True, text=True, check=False
    )


def test_another_program_takes_the_process_over() -> None:
    ended = started("sh", "-c", "echo $((6*7)); exit 5")
    assert (ended.returncode, ended.stdout) == (5, "42\n")


def test_a_program_that_can_not_run(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for name, code, reason in (
        ("nowhere", 127, "No such file or directory"),
        ("text", 126, "Permission denied"),
    ):
        ended = started(str(tmp_path / name))
        assert (ended.returncode, ended.stderr) == (code, f"sparkmirror: {tmp_path / name}: {reason}\n")


def test_a_script_without_its_file_ends_as_kafkas() -> None:
    ended = started("/opt/kafka/bin/connect-mirror-maker.sh")
    assert ended.returncode == 1
    assert ended.stdout == "USAGE: /opt/kafka/bin/connect-mirror-maker.sh [-daemon] mm2.properties\n"


def test_contradicting_variables_are_one_line(tmp_path: Path) -> None:
    environ = {"CONNECT_GROUP_ID": "a", "GROUP_ID": "b"}
    ended = started("start", environ=environ, tmp=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr == (
        "sparkmirror: CONNECT_GROUP_ID and GROUP_ID: give group.id different values; set one of them\n"
    )


def test_what_has_no_effect_is_logged_before_the_command_ends(tmp_path: Path) -> None:
    ended = started("run", "/nowhere.properties", environ={"KAFKA_OPTS": "-Xmx1g"}, tmp=tmp_path)
    assert ended.returncode == 2
    first, second = ended.stderr.splitlines()
    assert first.endswith(
        "WARNING KAFKA_OPTS: -Xmx1g has no effect here; the heap of Spark is spark.driver.memory"
    )
    assert "/nowhere.properties: No such file or directory" in second
    assert (tmp_path / place().name).read_text() == "http://127.0.0.1:8080/health"


def test_a_worker_gets_a_file_of_its_own_and_its_errors_name_properties(tmp_path: Path) -> None:
    environ = {
        "CONNECT_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "CONNECT_GROUP_ID": "mirrors",
        "CONNECT_CONFIG_STORAGE_TOPIC": "configs",
        "CONNECT_OFFSET_STORAGE_TOPIC": "offsets",
        "CONNECT_STATUS_STORAGE_TOPIC": "statuses",
        "CONNECT_CONFIG_STORAGE_REPLICATION_FACTOR": "many",
    }
    ended = started(environ=environ, tmp=tmp_path)
    assert ended.returncode == 2
    (file,) = tmp_path.glob("connect-distributed-*.properties")
    assert f"{file}: " in ended.stderr
    assert "Invalid value many for configuration config.storage.replication.factor" in ended.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / place().name).read_text() == "http://127.0.0.1:8083/health"


def test_a_folder_that_can_not_be_written_is_one_line(tmp_path: Path) -> None:
    program = (
        "import sys, tempfile; tempfile.tempdir = sys.argv.pop(); "
        "from sparkmirror.container.entry import main; sys.exit(main(['run', 'mm2.properties']))"
    )
    (tmp_path / "file").touch()
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "file")], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "Not a directory" in line
    assert line.endswith("mount a tmpfs or a volume at /tmp")
