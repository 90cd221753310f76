"""Runs a mirror in this process, whose tasks are threads."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias
from sparkmirror.mirror.dedicated import MirrorMaker
from sparkmirror.settings.mirror_maker_file import parsed_mirror_maker
from tests.support.threaded_spark import ThreadedSpark


@contextmanager
def threaded_mirror(
    properties: Mapping[str, str], into: Sequence[str], accepted: Collection[Alias] = ()
) -> Iterator[tuple[MirrorMaker, list[SparkmirrorError]]]:
    """Run the flows into these clusters; the list gets the error with which the mirror ends."""
    flows = parsed_mirror_maker(Properties(properties), into).flows
    mirror = MirrorMaker(flows, ThreadedSpark().as_demanded(), accepted=accepted)
    errors: list[SparkmirrorError] = []
    waiting = threading.Thread(target=_wait, args=(mirror, errors), daemon=True)
    mirror.start()
    waiting.start()
    try:
        yield mirror, errors
    finally:
        mirror.stop()
        waiting.join()
        mirror.close()


def _wait(mirror: MirrorMaker, errors: list[SparkmirrorError]) -> None:
    try:
        mirror.wait()
    except SparkmirrorError as error:
        errors.append(error)
