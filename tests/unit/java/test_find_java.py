import os
from pathlib import Path

import pytest

from sparkmirror.domain.errors import NotInstalledError
from sparkmirror.java.find_java import MODULES, Host, Java, find_java, install_command, parse_version

DEBIAN_12 = Host("linux", {"ID": "debian", "VERSION_ID": "12"})


def fake_java(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "21.0.1" 2023-10-17', 21),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_java_version_is_parsed(text: str, version: int | None) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("host", "command"),
    [
        (DEBIAN_12, "sudo apt-get install -y openjdk-17-jre-headless"),
        (
            Host("linux", {"ID": "debian", "VERSION_ID": "13"}),
            "sudo apt-get install -y openjdk-21-jre-headless",
        ),
        (Host("linux", {"ID": "ubuntu"}), "sudo apt-get install -y openjdk-21-jre-headless"),
        (
            Host("linux", {"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}),
            "sudo apt-get install -y openjdk-21-jre-headless",
        ),
        (Host("linux", {"ID": "fedora"}), "sudo dnf install -y java-21-openjdk-headless"),
        (
            Host("linux", {"ID": "rocky", "ID_LIKE": "rhel centos fedora"}),
            "sudo dnf install -y java-21-openjdk-headless",
        ),
        (Host("linux", {"ID": "alpine"}), "apk add openjdk21-jre-headless"),
        (Host("darwin", {}), "brew install --cask temurin@21"),
        (Host("linux", {"ID": "nixos"}), "install Java 21 (Temurin) from Adoptium"),
    ],
)
def test_install_command_suits_the_platform(host: Host, command: str) -> None:
    assert install_command(host) == command


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    at_home = fake_java(tmp_path / "home", "21.0.1")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert find_java(environ, DEBIAN_12) == Java(str(at_home), 21)


def test_a_java_is_started_once_until_another_is_installed_in_its_place(tmp_path: Path) -> None:
    java = fake_java(tmp_path, "17.0.1")
    with java.open("a") as script:
        script.write(f"echo started >> {tmp_path}/starts\n")
    environ = {"JAVA_HOME": str(tmp_path)}
    assert [find_java(environ, DEBIAN_12).version for _ in range(2)] == [17, 17]
    assert (tmp_path / "starts").read_text() == "started\n"
    java.write_text(java.read_text().replace("17.0.1", "21.0.1"))
    os.utime(java, ns=(0, 1))
    assert find_java(environ, DEBIAN_12).version == 21


def test_old_java_home_is_skipped_for_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "11.0.2")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert find_java(environ, DEBIAN_12) == Java(str(on_path), 17)


def test_error_without_java_has_the_install_command(tmp_path: Path) -> None:
    with pytest.raises(NotInstalledError) as caught:
        find_java({"PATH": str(tmp_path)}, DEBIAN_12)
    assert str(caught.value) == (
        "No Java was found in JAVA_HOME and PATH. sparkmirror needs Java 17 or newer: "
        "sudo apt-get install -y openjdk-17-jre-headless"
    )


def test_error_lists_unusable_javas_with_reasons(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "path", "11.0.2")
    environ = {"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old.parent)}
    with pytest.raises(NotInstalledError) as caught:
        find_java(environ, DEBIAN_12)
    why = f"{tmp_path}/gone/bin/java does not run (No such file or directory); {old} is Java 11. "
    assert str(caught.value).startswith(why)


def test_a_runtime_without_modules_that_spark_needs_is_named_and_skipped(tmp_path: Path) -> None:
    linked = fake_java(tmp_path / "home", "21.0.1")
    held = [name for name in MODULES if name not in ("java.desktop", "jdk.security.auth")]
    release = tmp_path / "home" / "release"
    release.write_text(f'JAVA_VERSION="21.0.1"\nMODULES="java.base {" ".join(held)}"\n')
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path)}
    with pytest.raises(NotInstalledError) as caught:
        find_java(environ, DEBIAN_12)
    why = f"{linked} is Java 21 without the modules java.desktop, jdk.security.auth. "
    assert str(caught.value).startswith(why)
    release.write_text(f'MODULES="java.base {" ".join(MODULES)}"\n')
    assert find_java(environ, DEBIAN_12) == Java(str(linked), 21)
