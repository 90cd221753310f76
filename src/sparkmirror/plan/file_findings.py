"""Finds what an mm2.properties says in vain: keys that nothing reads, unlisted clusters, no flow. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sparkmirror.config.known_keys import UnknownKey
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.plan.flow_plan import Finding, Severity

UNKNOWN_KEY: Final = "unknown key"
NO_FLOW: Final = "no flow"
ALL_TOPICS: Final = "all topics"

_FLOW: Final = re.compile(r"(?P<source>.+)->(?P<target>[^.]+)\..+")


def file_findings(config: MirrorMakerConfig) -> tuple[Finding, ...]:
    """Return the findings of the whole file, whichever of its flows are planned."""
    return (*_no_flow(config), *unread_keys(config.unknown_keys(), config.clusters))


def unread_keys(unknown: Iterable[UnknownKey], clusters: Sequence[Alias]) -> Iterator[Finding]:
    """Find keys that nothing reads.

    One that resembles a known key or names an unlisted cluster blocks: a typo.
    """
    for each in unknown:
        strange = [alias for alias in _aliases(each.key) if alias not in clusters]
        if strange:
            listed = ", ".join(clusters)
            text = f"nothing reads this key: {' and '.join(strange)} is not in clusters ({listed})"
        else:
            text = "nothing reads this key" if each.note is None else f"nothing reads this key: {each.note}"
        is_meant = each.nearest is not None or bool(strange)
        remedy = "" if each.nearest is None else f"did you mean {each.nearest}?"
        yield Finding(UNKNOWN_KEY, Severity.BLOCKS if is_meant else Severity.WARNS, each.key, text, remedy)


def _aliases(key: str) -> Sequence[str]:
    """The clusters of a key below a flow."""
    found = _FLOW.fullmatch(key)
    return () if found is None else (found["source"], found["target"])


def _no_flow(config: MirrorMakerConfig) -> Iterator[Finding]:
    if not config.mirroring():
        flow = Flow(*config.clusters[:2]) if len(config.clusters) > 1 else "A->B"
        yield Finding(
            NO_FLOW,
            Severity.BLOCKS,
            "clusters",
            "no flow is enabled: nothing is mirrored, only heartbeats are emitted",
            f"set {flow}.enabled=true",
        )


def all_topics(config: MirrorMakerConfig, flow: Flow) -> Iterator[Finding]:
    """A note for an enabled flow whose topics are left at the default, which is all of them."""
    if flow in config.mirroring() and not config.names_topics(flow):
        yield Finding(
            ALL_TOPICS,
            Severity.NOTE,
            f"{flow}.topics",
            f"is not set, so that every topic of {flow.source} is mirrored (.*, the default)",
        )
