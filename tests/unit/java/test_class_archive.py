import os
from pathlib import Path

import pytest

from sparkmirror.domain.errors import JarsError
from sparkmirror.java.class_archive import ClassArchive

OPTION = "-XX:ArchiveClassesAtExit="


def environment(home: Path, java: str = "java-17") -> dict[str, str]:
    executable = home / java / "bin" / "java"
    executable.parent.mkdir(parents=True, exist_ok=True)
    executable.touch()
    return {"JAVA_HOME": str(home / java), "SPARKMIRROR_CACHE": str(home / "cache")}


def write(option: str) -> None:
    assert option.startswith(OPTION)
    Path(option.removeprefix(OPTION)).write_bytes(b"classes")


def test_jvm_options_name_the_archive_once_it_exists(tmp_path: Path) -> None:
    archive = ClassArchive.of("kafka", Path("/jars"), environment(tmp_path))
    assert not archive.options
    archive.make(write)
    assert archive.options == (f"-XX:SharedArchiveFile={archive.file}",)
    assert archive.file.read_bytes() == b"classes"


def test_existing_archive_is_not_made_again(tmp_path: Path) -> None:
    archive = ClassArchive.of("kafka", Path("/jars"), environment(tmp_path))
    archive.make(write)

    def never(option: str) -> None:
        raise AssertionError(option)

    archive.make(never)


def test_other_jars_or_another_java_have_another_archive(tmp_path: Path) -> None:
    environ = environment(tmp_path)
    files = [
        ClassArchive.of("kafka", Path("/jars"), environ).file,
        ClassArchive.of("kafka", Path("/other"), environ).file,
        ClassArchive.of("kafka", Path("/jars"), environment(tmp_path, "java-21")).file,
    ]
    os.utime(tmp_path / "java-17" / "bin" / "java", ns=(0, 0))
    files.append(ClassArchive.of("kafka", Path("/jars"), environ).file)
    assert len(set(files)) == 4


def test_archive_of_reinstalled_jars_replaces_the_old_one(tmp_path: Path) -> None:
    jars, environ = tmp_path / "jars", environment(tmp_path)
    jars.mkdir()
    old, other = (ClassArchive.of(name, jars, environ) for name in ("spark", "kafka"))
    old.make(write)
    other.make(write)
    os.utime(jars, ns=(0, 0))
    new = ClassArchive.of("spark", jars, environ)
    assert not new.exists
    new.make(write)
    assert (new.exists, old.exists, other.exists) == (True, False, True)


def test_there_is_no_archive_without_java(tmp_path: Path) -> None:
    assert ClassArchive.of("kafka", Path("/jars"), {"PATH": "", "HOME": str(tmp_path)}).options == ()


def test_java_that_writes_no_archive_is_an_error(tmp_path: Path) -> None:
    archive = ClassArchive.of("kafka", Path("/jars"), environment(tmp_path))
    with pytest.raises(JarsError, match=r"Java wrote no archive of its classes to .*It is not needed"):
        archive.make(lambda _: None)
    assert not archive.exists


def test_archive_of_a_failed_run_is_discarded(tmp_path: Path) -> None:
    archive = ClassArchive.of("kafka", Path("/jars"), environment(tmp_path))

    def fail(option: str) -> None:
        write(option)
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        archive.make(fail)
    assert not archive.exists
    assert [file.suffix for file in archive.file.parent.iterdir()] == [".lock"]
