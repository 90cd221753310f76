"""Fetching jars with a shell script instead of `java -jar ivy.jar`."""

import hashlib
from pathlib import Path

import pytest

from sparkmirror.domain.errors import JarsError
from sparkmirror.java.find_java import Java
from sparkmirror.java.ivy import Ivy, Module
from sparkmirror.java.jars import JarSet, ensure_jars, kafka_jars, kafka_tools_jars, mirror_maker_jars

CONTENT = {"broker-1.jar": "broker\n", "clients-1.jar": "clients\n"}
SUMS = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in CONTENT.items()}
SET = JarSet("set-1", (Module("org", "broker", "1"),), SUMS)

IVY = """#!/bin/sh
echo "$@" >> '{calls}'
while [ $# -gt 1 ]; do
  [ "$1" = -retrieve ] && jars=$(dirname "$2")
  [ "$1" = -cache ] && cache=$2
  shift
done
mkdir -p "$jars" "$cache"
printf '\\tfound org#broker;1 in public\\n'
{body}
"""
FETCHES_ALL = "\n".join(f"echo {text.strip()} > $jars/{name}" for name, text in CONTENT.items())


class FakeIvy:
    def __init__(self, folder: Path) -> None:
        self.calls_file = folder / "calls"
        self._script = folder / "java"

    def which(self, body: str = FETCHES_ALL, settings: str | None = None) -> Ivy:
        self._script.write_text(IVY.format(calls=self.calls_file, body=body))
        self._script.chmod(0o755)
        return Ivy(str(self._script), Path("ivy.jar"), settings)

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture
def fake(tmp_path: Path) -> FakeIvy:
    return FakeIvy(tmp_path)


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_jars_are_fetched_once(tmp_path: Path, fake: FakeIvy) -> None:
    ivy = fake.which()
    folder = ensure_jars(SET, cache=tmp_path / "cache", ivy=ivy)
    assert names(folder) == set(CONTENT)
    assert ensure_jars(SET, cache=tmp_path / "cache", ivy=ivy) == folder
    assert len(fake.calls) == 1
    assert names(folder.parent) == {"set-1", "set-1.lock"}


def test_progress_is_reported(tmp_path: Path, fake: FakeIvy) -> None:
    progress: list[str] = []
    ivy = fake.which(f"{FETCHES_ALL}\necho '[SUCCESSFUL ] org#broker;1!broker.jar (166ms)'")
    ensure_jars(SET, cache=tmp_path / "cache", ivy=ivy, on_progress=progress.append)
    assert progress == [
        "Fetching set-1 (once): resolved 1/2 jars",
        "Fetching set-1 (once): fetched 1/2 jars",
        "Fetched and verified 2 jars of set-1",
    ]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (f"{FETCHES_ALL}\nrm $jars/clients-1.jar", "clients-1.jar is missing"),
        (f"{FETCHES_ALL}\necho x > $jars/stranger.jar", "stranger.jar does not belong to it"),
        (f"{FETCHES_ALL}\necho x > $jars/broker-1.jar", f"instead of {SUMS['broker-1.jar']}"),
    ],
)
def test_jars_other_than_recorded_are_not_installed(
    tmp_path: Path, fake: FakeIvy, body: str, fault: str
) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(JarsError, match="are not the recorded ones") as caught:
        ensure_jars(SET, cache=cache, ivy=fake.which(body))
    assert fault in str(caught.value)
    assert names(cache / "jars") == {"set-1.lock"}


def test_failed_fetch_reports_the_reason_and_keeps_downloads_for_the_next_try(
    tmp_path: Path, fake: FakeIvy
) -> None:
    cache = tmp_path / "cache"
    said = "echo ':: org#broker;1: not found'; echo 'Host repo not found'"
    body = f"touch $cache/kept $jars/half.jar; {said}; exit 1"
    with pytest.raises(JarsError, match=r"Central: Host repo not found\. .* SPARKMIRROR_IVY"):
        ensure_jars(SET, cache=cache, ivy=fake.which(body))
    assert (cache / "jars" / "set-1.partial" / "ivy" / "kept").exists()
    assert names(ensure_jars(SET, cache=cache, ivy=fake.which())) == set(CONTENT)
    assert names(cache / "jars") == {"set-1", "set-1.lock"}


def test_a_deleted_jar_is_fetched_again(tmp_path: Path, fake: FakeIvy) -> None:
    folder = ensure_jars(SET, cache=tmp_path / "cache", ivy=fake.which())
    (folder / "broker-1.jar").unlink()
    assert names(ensure_jars(SET, cache=tmp_path / "cache", ivy=fake.which())) == set(CONTENT)


def test_own_ivy_settings_are_passed_on(tmp_path: Path, fake: FakeIvy) -> None:
    ensure_jars(SET, cache=tmp_path / "cache", ivy=fake.which(settings="/etc/ivysettings.xml"))
    assert "-settings /etc/ivysettings.xml" in fake.calls[0]


def test_ivy_is_found_among_pysparks_jars() -> None:
    ivy = Ivy.of_pyspark(Java("/bin/java", 17), {"SPARKMIRROR_IVY_SETTINGS": "/etc/ivysettings.xml"})
    assert ivy.jar.is_file()
    assert (ivy.java, ivy.settings) == ("/bin/java", "/etc/ivysettings.xml")


@pytest.mark.parametrize(
    "jar_set", [kafka_jars(), kafka_tools_jars(), mirror_maker_jars()], ids=lambda jar_set: jar_set.name
)
def test_every_module_has_a_recorded_checksum(jar_set: JarSet) -> None:
    modules = {f"{module.name}-{module.revision}.jar" for module in jar_set.modules}
    assert modules <= set(jar_set.sums)
    assert all(len(bytes.fromhex(digest)) == 32 for digest in jar_set.sums.values())
