"""Starts systemd as the first process of namespaces of its own, which runs the units of `deploy/systemd`.

It has its own mounts, processes, control groups and host name, and the network of this machine, where the
brokers are. Nothing that it writes reaches the machine: /etc, /opt and /var are overlays.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest

from sparkmirror.clusters.processes import Process, start_process
from sparkmirror.java.folders import cache_folder
from tests.support.waiting import await_value

ROOT: Final = Path(__file__).parents[2]
UNITS: Final = ROOT / "deploy" / "systemd"
SYSTEMD: Final = Path("/lib/systemd/systemd")
_PROGRAMS: Final = ("unshare", "nsenter", "systemctl", "mount")
_TARGETS: Final = ("sysinit", "basic", "network-online", "multi-user", "shutdown", "default")
_START_S: Final = 30.0

_GROUP: Final = """\
set -e
mount --make-rprivate /
mkdir -p $FOLDER/cgroup
mount -t cgroup2 none $FOLDER/cgroup
mkdir -p $FOLDER/cgroup/$GROUP
echo $$ >$FOLDER/cgroup/$GROUP/cgroup.procs
exec unshare --pid --fork --kill-child --mount --mount-proc --cgroup --ipc --uts sh -c "$INIT"
"""
_CLEAN_UP: Final = """\
set -e
mount --make-rprivate /
mount -t cgroup2 none $FOLDER/cgroup
until grep -q "populated 0" $FOLDER/cgroup/$GROUP/cgroup.events; do sleep 0.05; done
find $FOLDER/cgroup/$GROUP -depth -type d -exec rmdir {} +
"""
_INIT: Final = """\
set -e
mount --make-rprivate /
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs tmpfs /run
for folder in etc opt var; do
  mkdir -p /run/overlay/$folder/upper /run/overlay/$folder/work
  over=/run/overlay/$folder
  mount -t overlay overlay -o lowerdir=/$folder,upperdir=$over/upper,workdir=$over/work /$folder
done
mount -t tmpfs tmpfs /etc/systemd/system
cp -r $FOLDER/units/. /etc/systemd/system/
mkdir -p /etc/credstore /etc/sparkmirror /opt/sparkmirror/bin
cp $FOLDER/sparkmirror /opt/sparkmirror/bin/sparkmirror
bind() { mkdir -p /opt/sparkmirror/$2; mount --bind "$1" /opt/sparkmirror/$2; }
bind "$PYTHON" python
bind "$PACKAGES" lib
bind "$SOURCES" src
bind "$CACHE" cache
mount --bind $FOLDER/console /dev/console
mount --make-rshared /  # as at a boot: credentials are mounted by a child
export SYSTEMD_UNIT_PATH=/etc/systemd/system container=other
exec $SYSTEMD --system --log-target=console --show-status=0
"""
_PROGRAM: Final = f"""\
#!/bin/sh
export PYTHONPATH=/opt/sparkmirror/src:/opt/sparkmirror/lib LD_LIBRARY_PATH=/opt/sparkmirror/python/lib
exec /opt/sparkmirror/python/bin/python3.{sys.version_info.minor} \\
  -c 'import sys; from sparkmirror.cli.main import main; sys.exit(main())' "$@"
"""


class Machine:
    """`etc` is written before a unit is started; its paths are those of the machine."""

    def __init__(self, folder: Path, first: psutil.Process) -> None:
        self._folder = folder
        self._first = first

    def systemctl(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self._inside("systemctl", "--no-pager", *words)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        script = 'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"'
        done = self._inside("sh", "-c", script, "sh", path, f"{mode:o}", given=text)
        assert done.returncode == 0, done.stderr

    def change(self, unit: str, text: str) -> None:
        """Add a drop-in, and let each unit write its log to a file, as there is no journal."""
        self.write(f"/etc/systemd/system/{unit}.d/test.conf", text)
        assert self.systemctl("daemon-reload").returncode == 0

    def show(self, unit: str, *names: str) -> Mapping[str, str]:
        shown = self.systemctl("show", unit, *(f"--property={name}" for name in names)).stdout
        return dict(line.split("=", 1) for line in shown.splitlines())

    def await_shown(self, unit: str, timeout_s: float, **values: str) -> None:
        await_value(
            lambda: values.items() <= self.show(unit, *values).items(),
            timeout_s,
            lambda: f"{self.systemctl('status', unit).stdout}\n{self.log(unit)}",
        )

    def process(self, unit: str) -> psutil.Process:
        """The main process of a unit, as this machine knows it."""
        inner = int(self.show(unit, "MainPID")["MainPID"])
        for process in self._first.children(recursive=True):
            numbers = Path(f"/proc/{process.pid}/status").read_text().split("NSpid:")[1].split("\n")[0]
            if int(numbers.split()[-1]) == inner:
                return process
        raise AssertionError(f"{unit} has no process {inner}")

    def log(self, unit: str) -> str:
        file = self.log_file(unit)
        return file.read_text(errors="replace") if file.exists() else ""

    def log_file(self, unit: str) -> Path:
        return self._folder / f"{unit}.log"

    def _inside(self, *words: str, given: str = "") -> "subprocess.CompletedProcess[str]":
        enter = ["nsenter", "-t", str(self._first.pid), "-m", "-p", "-C", "-i", "-u"]
        environment = {"PATH": os.environ["PATH"], "SYSTEMD_UNIT_PATH": "/etc/systemd/system"}
        return subprocess.run(
            [*enter, *words],
            env=environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


def require_systemd() -> None:
    """Skip the test where namespaces or systemd are missing, with what is."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if missing or not SYSTEMD.exists():
        pytest.skip(f"not run: needs {', '.join(missing) or SYSTEMD}")
    if os.geteuid() != 0:
        pytest.skip("not run: needs root, for namespaces in which systemd is the first process")


@contextmanager
def running_machine(folder: Path) -> Iterator[Machine]:
    """Start systemd with our units; at the end its processes are killed and its control groups removed."""
    units = folder / "units"
    units.mkdir(parents=True)
    for target in _TARGETS:
        (units / f"{target}.target").write_text("[Unit]\nDefaultDependencies=no\n")
    for unit in UNITS.glob("*.service"):
        (units / unit.name).write_text(unit.read_text())
        (units / f"{unit.name}.d").mkdir()
        # No journal runs there.
        log = folder / unit.name.replace("@.", "@%i.")
        (units / f"{unit.name}.d" / "log.conf").write_text(
            f"[Service]\nStandardOutput=append:{log}.log\nStandardError=inherit\n"
        )
    (folder / "console").touch()
    program = folder / "sparkmirror"
    program.write_text(_PROGRAM)
    program.chmod(0o755)
    environment = {
        "FOLDER": str(folder),
        "GROUP": f"sparkmirror-test-{os.getpid()}",
        "INIT": _INIT,
        "SYSTEMD": str(SYSTEMD),
        "PYTHON": sys.base_prefix,
        "PACKAGES": sysconfig.get_paths()["purelib"],
        "SOURCES": str(ROOT / "src"),
        "CACHE": str(cache_folder()),
    }
    outer = start_process([_in_own_mounts(environment, _GROUP)], folder / "start.log", outlives_us=False)
    has_started = False
    try:
        machine = _started(folder, outer)
        has_started = True
        yield machine
    finally:
        outer.kill()  # with it goes the first process of the namespaces, and with that all others
        subprocess.run(_in_own_mounts(environment, _CLEAN_UP), check=has_started, timeout=_START_S)


def _in_own_mounts(environment: Mapping[str, str], script: str) -> list[str]:
    variables = [f"{name}={value}" for name, value in environment.items()]
    return ["env", *variables, "unshare", "--mount", "sh", "-c", script]


def _started(folder: Path, outer: Process) -> Machine:
    def first() -> psutil.Process | None:
        if not outer.is_alive():
            pytest.skip(f"not run: no namespaces here: {(folder / 'start.log').read_text()[-300:]}")
        found = [it for it in psutil.Process(outer.pid).children() if it.exe() == str(SYSTEMD.resolve())]
        return found[0] if found else None

    machine = Machine(folder, await_value(first, _START_S, (folder / "start.log").read_text))
    await_value(
        lambda: machine.systemctl("is-system-running").stdout.strip() in ("running", "degraded"),
        _START_S,
        (folder / "console").read_text,
    )
    return machine
