import os
from pathlib import Path

import pytest

from sparkmirror.files import NamedFile, opened_below

BYTES_MAX = 100


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "folder").mkdir(parents=True)
    (tmp_path / "root" / "folder" / "file").write_text("allowed")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("secret")
    return tmp_path / "root"


def below(root: Path, path: Path) -> bytes:
    return NamedFile(str(path), (str(root),)).read(BYTES_MAX)


def test_links_may_lead_to_other_places_below(root: Path) -> None:
    """Kubernetes mounts secrets by such links."""
    (root / "..data").symlink_to("folder")
    (root / "link").symlink_to("..data/file")
    assert below(root, root / "link") == b"allowed"
    assert below(root, root / "..data" / "file") == b"allowed"


@pytest.mark.parametrize("path", ["link", "linked/file", "../outside/file", "folder/../../outside/file", ""])
def test_what_is_not_below_is_not_opened(root: Path, path: str) -> None:
    (root / "link").symlink_to("../outside/file")
    (root / "linked").symlink_to("../outside")
    with pytest.raises(PermissionError):
        below(root, root / path)


def test_devices_pipes_and_large_files_are_refused(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "large").write_bytes(b"x" * (BYTES_MAX + 1))
    for path in (root / "pipe", root / "large", root / "folder", Path("/dev/zero"), root / "a\0b"):
        with pytest.raises(OSError, match=r"no.* regular file|larger than 100 bytes|is not a path|directory"):
            NamedFile(str(path)).read(BYTES_MAX)


@pytest.mark.parametrize("swapped", ["folder/file", "folder"])
def test_what_was_swapped_for_a_link_since_it_was_looked_up_is_not_opened(root: Path, swapped: str) -> None:
    parts = ("folder", "file")
    number = opened_below(root, parts, os.O_RDONLY)
    assert os.read(number, BYTES_MAX) == b"allowed"
    os.close(number)
    (root / swapped).rename(root / "kept")
    (root / swapped).symlink_to(root.parent / "outside" / Path(swapped).relative_to("folder"))
    assert (root / "folder" / "file").read_text() == "secret"
    with pytest.raises(OSError, match=r"symbolic link|Not a directory"):
        opened_below(root, parts, os.O_RDONLY)
