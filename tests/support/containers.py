"""Builds the image with buildah and runs it with podman and crun, without a daemon.

Limits above this process's own need a capability that the root of a container may lack, and crun refuses a
host with both kinds of cgroups: limits are set by a file, and podman runs in a mount namespace that has the
new kind only.
"""

import fcntl
import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from tests.support.waiting import await_value

ROOT: Final = Path(__file__).parents[2]
STORAGE_VARIABLE: Final = "SPARKMIRROR_IMAGE_STORAGE"
"""Names the folder of images, which keeps layers from one run to the next; by default below `build`."""

USER: Final = "10001:10001"
TMP: Final = "/tmp:rw,mode=1777,size=512m"
_PROGRAMS: Final = ("buildah", "podman", "crun", "conmon", "mmdebstrap", "unshare")
_SUITE: Final = "trixie"
_BASE: Final = f"localhost/base:{_SUITE}"
_IMAGE: Final = "localhost/sparkmirror:tested"
_LEFT_OUT: Final = ("man", "doc", "locale", "info")
_LIMIT: Final = 20000
_NAMESPACE: Final = """\
set -e
mount --make-rprivate /
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
exec "$@"
"""
_START_TIMEOUT_S: Final = 90.0
_STOP_TIMEOUT_S: Final = 60.0


def why_not() -> str | None:
    """Say what is missing for containers on this machine; None if nothing is."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing:
        install = "apt-get install --no-install-recommends buildah podman crun conmon mmdebstrap util-linux"
        return f"needs {', '.join(missing)}: {install}"
    return None if os.geteuid() == 0 else "needs root, for buildah and podman without a daemon"


class Layer(NamedTuple):
    """A layer's size, unpacked, and the end of the instruction that made it."""

    bytes: int
    made_by: str


class Engine:
    """The programs with a storage of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._environment = {
            **os.environ,
            "CONTAINERS_STORAGE_CONF": str(home / "storage.conf"),
            "CONTAINERS_CONF": str(home / "containers.conf"),
        }

    def prepare(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        graph, run = self.home / "storage" / "graph", self.home / "storage" / "run"
        storage = f'[storage]\ndriver = "overlay"\ngraphroot = "{graph}"\nrunroot = "{run}"\n'
        (self.home / "storage.conf").write_text(storage)
        limits = [f'"{name}={hard}:{hard}"' for name, hard in _limits()]
        (self.home / "containers.conf").write_text(f"[containers]\ndefault_ulimits = [{', '.join(limits)}]\n")
        (self.home / "namespace.sh").write_text(_NAMESPACE)

    def build(self) -> None:
        """Build the base if it is not there, and the image. Another process that builds is waited for."""
        with (self.home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._call("buildah", "images", "-q", _BASE, check=False).returncode:
                self._make_base()
            digest = self._call("buildah", "images", "--format", "{{.Digest}}", _BASE).stdout.strip()
            authorities = self._environment.get("PIP_CERT") or self._environment.get("SSL_CERT_FILE")
            secret = [f"--secret=id=ca,src={authorities}"] if authorities else []
            options = ["--isolation=chroot", "--layers", "--format=docker", "--pull-never", *secret]
            base = f"--build-arg=BASE=localhost/base@{digest}"
            self._call("buildah", "build", *options, base, "--tag", _IMAGE, str(ROOT), log="build.log")

    def layers(self) -> list[Layer]:
        listed = json.loads(self._call("podman", "history", "--format=json", _IMAGE).stdout)
        return [Layer(each["size"], each["CreatedBy"]) for each in listed if each["size"]]

    def run(
        self, *words: str, options: Sequence[str] = (), user: str = USER
    ) -> subprocess.CompletedProcess[str]:
        """Run a container to its end, with a read-only root, without capabilities."""
        return self._call(*self._run(f"sm-{uuid4().hex[:8]}", words, options, user), check=False)

    @contextmanager
    def started(
        self, folder: Path, *words: str, options: Sequence[str] = (), user: str = USER
    ) -> Iterator["Container"]:
        """Start a container, whose output goes to a file in the folder; at the end it is removed."""
        name = f"sm-{uuid4().hex[:8]}"
        with (folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                self.command(*self._run(name, words, options, user)),
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        container = Container(self, name, process, folder / f"{name}.log")
        try:
            yield container
        finally:
            self._call("podman", "rm", "--force", "--time=0", name, check=False)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT_S)
            process.kill()

    def command(self, *words: str) -> list[str]:
        """The command line of podman, in a mount namespace of its own."""
        return ["unshare", "--mount", "bash", str(self.home / "namespace.sh"), *words]

    def in_container(self, name: str, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return self._call("podman", "exec", name, *words, check=False)

    def kill(self, name: str, signal: str) -> None:
        self._call("podman", "kill", f"--signal={signal}", name)

    def _run(self, name: str, words: Sequence[str], options: Sequence[str], user: str) -> list[str]:
        own_tmp = any(option.startswith("--tmpfs=/tmp:") for option in options)
        return [
            *("podman", "run", "--rm", f"--name={name}", f"--user={user}", "--network=host"),
            *("--cgroups=disabled", "--no-healthcheck", "--read-only", "--read-only-tmpfs=false"),
            *([] if own_tmp else [f"--tmpfs={TMP}"]),
            *("--cap-drop=all", "--security-opt=no-new-privileges", "--pull=never"),
            *options,
            _IMAGE,
            *words,
        ]

    def _make_base(self) -> None:
        excluded = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT]
        kept = "--dpkgopt=path-include=/usr/share/doc/*/copyright"
        archive = self.home / "base.tar"
        self._call("mmdebstrap", "--variant=minbase", *excluded, kept, _SUITE, str(archive), log="base.log")
        (self.home / "Base").write_text('FROM scratch\nADD base.tar /\nCMD ["bash"]\n')
        self._call("buildah", "build", "--file", str(self.home / "Base"), "--tag", _BASE, str(self.home))

    def _call(
        self, *words: str, check: bool = True, log: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        command = self.command(*words) if words[0] == "podman" else list(words)
        if log is not None:
            with (self.home / log).open("w") as output:
                ended = subprocess.run(
                    command, env=self._environment, stdout=output, stderr=output, text=True, check=False
                )
            assert not ended.returncode, (self.home / log).read_text()[-4000:]
            return ended
        ended = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert not (check and ended.returncode), f"{words}: {ended.stderr}"
        return ended


class Container:
    """A container that was started."""

    def __init__(self, engine: Engine, name: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._engine = engine
        self.name = name
        self.process = process
        self.log = log

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def assert_runs(self) -> None:
        assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.text()}"

    def await_log(self, pattern: str, timeout_s: float = _START_TIMEOUT_S) -> str:
        """Wait for a line that matches; returns the first."""
        line = re.compile(f".*(?:{pattern}).*")

        def found() -> str | None:
            match = line.search(self.text())
            assert match or self.process.poll() is None, (
                f"ended with {self.process.returncode}:\n{self.text()}"
            )
            return None if match is None else match[0]

        return await_value(found, timeout_s, lambda: f"no line with {pattern!r} in\n{self.text()}")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program in it, as its user, without its entry."""
        return self._engine.in_container(self.name, words)

    def await_health(self, code: int = 0) -> str:
        """Wait until the program of HEALTHCHECK ends so; returns what it says."""

        def asked() -> str | None:
            self.assert_runs()
            ended = self.run("/opt/sparkmirror/bin/health")
            return ended.stdout if ended.returncode == code else None

        return await_value(
            asked, _START_TIMEOUT_S, lambda: f"{self.run('/opt/sparkmirror/bin/health')}\n{self.text()}"
        )

    def stop(self, signal: str = "TERM") -> int:
        """Send the signal to the first process; returns the container's exit code."""
        self._engine.kill(self.name, signal)
        return self.process.wait(_STOP_TIMEOUT_S)


def _limits() -> Iterator[tuple[str, int]]:
    for name, limit in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        _, hard = resource.getrlimit(limit)
        yield name, _LIMIT if hard == resource.RLIM_INFINITY else min(hard, _LIMIT)


def mounted(file: Path, at: str) -> str:
    """The option that mounts a file read-only."""
    file.chmod(0o644)
    return f"--volume={file}:{at}:ro"


def variables(values: Mapping[str, str]) -> list[str]:
    return [f"--env={name}={value}" for name, value in values.items()]
