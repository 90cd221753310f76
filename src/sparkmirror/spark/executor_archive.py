"""Packs what executors need in one archive: this package, the packages that it imports there, and a launcher.

Spark brings the archive to every executor and unpacks it in its working directory. The launcher `bin/python`
in it is what the executor runs as Python: it looks for an interpreter that fits and gives it the packages.
Nothing has to be installed on the executors' machines, and nothing there is changed.
"""

import gzip
import hashlib
import io
import re
import shlex
import sys
import tarfile
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

import sparkmirror
from sparkmirror.domain.errors import NotInstalledError, SparkmirrorError
from sparkmirror.domain.extras import how_to_install
from sparkmirror.files import written_whole
from sparkmirror.java.folders import locked, writable_cache_folder

FOLDER: Final = "sparkmirror"
"""The folder in an executor's working directory into which the archive is unpacked."""
LAUNCHER: Final = f"./{FOLDER}/bin/python"
PYTHON_VARIABLE: Final = "SPARKMIRROR_PYTHON"
"""The interpreter for the launcher; without it, the launcher takes one from the PATH that fits."""

NO_PYTHON: Final = 78
"""The launcher's exit code when no interpreter fits (EX_CONFIG of sysexits.h)."""
NO_PYTHON_MESSAGE: Final = "sparkmirror: no Python"
"""The launcher's error message then; Spark passes it on to the driver."""

PACKED: Final = (
    "cramjam",
    "crc32c",
    "cryptography",
    "javaproperties",
    "kafka-python",
    "numpy",
    "pyarrow",
    "pyjwt",
    "regex",
    "urllib3",
)
"""The packages that tasks import. PySpark comes with the cluster's Spark; only the driver needs pandas."""

_LEFT_OUT: Final = (
    # Headers, tests and programs; what a virtual environment makes by itself.
    "*/__pycache__/*",
    "__pycache__/*",
    "*/tests/*",
    "*/include/*",
    "*.pyi",
    "pyarrow/src/*",
    # A third of Arrow: its RPC and its file systems are loaded only on demand.
    "pyarrow/*flight*",
    "pyarrow/libarrow_s3*",
    "pyarrow/_s3fs*",
    # What only compilers and type checkers read.
    "*.pyx",
    "*.pxd",
    "*.pxi",
    # The cluster has its own Spark.
    "pyspark/jars/*",
    "pyspark/python/*",
    "pyspark/examples/*",
    "pyspark/data/*",
)
_COMPRESSION: Final = 3
"""Half the time of gzip's default for 3 % more bytes: the first start waits for it."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_LAUNCHER_TEXT: Final = """\
#!/bin/sh
# Runs a Python for which the packages beside this file were made, and gives them to it.
own={own}
fits() {{ "$1" -c 'import sys, importlib.machinery
sys.exit(importlib.machinery.EXTENSION_SUFFIXES[0] != "{suffix}")' 2>/dev/null; }}
here=$(cd "$(dirname "$0")/.." && pwd) || exit 1
for python in "${{{variable}:-$own}}" ${{{variable}:+""}} python{version} python3 python; do
  [ -n "$python" ] || break
  if fits "$python"; then
    PYTHONPATH="$here/packages${{PYTHONPATH:+:$PYTHONPATH}}" exec "$python" "$@"
  fi
done
echo "{no_python_message} {version} with modules {suffix}: ${{{variable}:-$own and those in PATH}}" >&2
# Spark restarts it at once, without end.
sleep 2
exit {no_python}
"""


class Packed(NamedTuple):
    """A file and its name in the archive."""

    file: Path
    name: str


class ArchiveContents(NamedTuple):
    """`distributions` are names with versions, as `numpy 2.4.6`."""

    files: Sequence[Packed]
    distributions: Sequence[str]

    @property
    def key(self) -> str:
        """The part of the archive's name in the cache that differs between installations."""
        text = "\n".join([binary_suffix(), sys.executable, str(_own_folder()), *self.distributions])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def own_files_changed_at(self) -> float:
        """Return when this package's files were last written, in seconds since 1970."""
        own = [packed.file for packed in self.files if _own_folder() in packed.file.parents]
        return max(file.stat().st_mtime for file in own)


def python_version() -> str:
    """The minor version of interpreters that can run the archive: `3.11`."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def binary_suffix() -> str:
    """The suffix of compiled modules, which holds version, processor and C library."""
    return EXTENSION_SUFFIXES[0]


def archive_contents(more: Collection[str] = ()) -> ArchiveContents:
    """The contents from this installation, with `more` distributions.

    Raises SparkmirrorError naming a distribution that is not installed, or that lists no files.
    """
    found = _with_requirements([*PACKED, *more])
    files = list(_own_files())
    for each in found:
        files += _files_of(each)
    return ArchiveContents(files, sorted(f"{each.name} {each.version}" for each in found))


def write_archive(contents: ArchiveContents, file: Path) -> None:
    """Gzipped tar, the same bytes for the same files. Raises OSError."""
    with (
        written_whole(file) as draft,
        draft.open("wb") as raw,
        gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        _add_launcher(archive)
        for each in sorted(contents.files, key=lambda packed: packed.name):
            archive.add(each.file, f"packages/{each.name}", recursive=False, filter=_anonymous)


def cached_archive(contents: ArchiveContents, on_write: Callable[[], None]) -> Path:
    """The archive of this installation's contents, written to the cache folder unless it's there and current.

    Where that folder can't be written, a folder of the user below the temporary one is taken. Raises
    SparkmirrorError.
    """
    file = (
        writable_cache_folder() / "executors" / f"sparkmirror-{sparkmirror.__version__}-{contents.key}.tar.gz"
    )
    with locked(file.with_suffix(".lock"), lambda: None):
        if not file.exists() or file.stat().st_mtime < contents.own_files_changed_at:
            on_write()
            write_archive(contents, file)
    return file


def _with_requirements(names: Sequence[str]) -> list[Distribution]:
    """Yield each distribution once, with its requirements."""
    found: dict[str, Distribution] = {}
    left = [*names]
    while left:
        name = left.pop()
        if _normal(name) in found:
            continue
        try:
            each = distribution(name)
        except PackageNotFoundError as error:
            why = f"{name} is not installed for {sys.executable}, and executors need it"
            if name in PACKED:
                raise NotInstalledError(f"{why}: {how_to_install('spark')}") from error
            raise SparkmirrorError(why) from error
        found[_normal(name)] = each
        left += _required(each)
    return list(found.values())


def _required(each: Distribution) -> Iterator[str]:
    """The requirements without extras and without those for other platforms."""
    for requirement in each.requires or ():
        name, marker = _NAME.match(requirement), requirement.partition(";")[2]
        if name is None or "extra" in marker:
            continue
        try:
            distribution(name[0])
        except PackageNotFoundError:
            if not marker:
                raise SparkmirrorError(
                    f"{each.name} requires {requirement}, which is not installed"
                ) from None
        else:
            yield name[0]


def _files_of(each: Distribution) -> Iterator[Packed]:
    if each.files is None:
        raise SparkmirrorError(
            f"{each.name} {each.version} was installed without a list of its files; install it with pip"
        )
    for listed in each.files:
        name = PurePosixPath(listed).as_posix()
        # Programs are beside the packages: ../../../bin.
        if name.startswith(("../", "/")) or _is_left_out(name):
            continue
        file = Path(str(each.locate_file(listed)))
        if not file.exists():  # the list is its source's: so Python 3.11 reads what old pips left
            raise SparkmirrorError(
                f"{each.name} {each.version} lists {name}, which is not there; reinstall it with pip 23.1 "
                "or newer"
            )
        yield Packed(file, name)


def _own_files() -> Iterator[Packed]:
    """The files of this package from its folder, since an editable installation lists none."""
    metadata = distribution("sparkmirror")
    yield from (file for file in _files_of(metadata) if fnmatchcase(file.name, "*.dist-info/METADATA"))
    folder = _own_folder()
    for file in folder.rglob("*"):
        name = f"sparkmirror/{file.relative_to(folder).as_posix()}"
        if file.is_file() and not _is_left_out(name):
            yield Packed(file, name)


def _own_folder() -> Path:
    return Path(sparkmirror.__file__).parent


def _is_left_out(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _LEFT_OUT)


def _normal(name: str) -> str:
    """Normalise a name as PEP 503 compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _add_launcher(archive: tarfile.TarFile) -> None:
    text = _LAUNCHER_TEXT.format(
        variable=PYTHON_VARIABLE,
        own=shlex.quote(sys.executable),
        version=python_version(),
        suffix=binary_suffix(),
        no_python_message=NO_PYTHON_MESSAGE,
        no_python=NO_PYTHON,
    ).encode()
    entry = tarfile.TarInfo("bin/python")
    entry.size, entry.mode = len(text), 0o755
    archive.addfile(entry, io.BytesIO(text))


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Readable by every user, and the same whichever user packed it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry
