"""Finds what a file or a connector's config says in vain, or says otherwise than it seems.

Nothing here refuses: what can't be used raises ConfigError when it is read, by whichever command. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from sparkmirror.config.client_options import PRODUCER, SHARED_NAMES
from sparkmirror.config.connector_options import MIRROR_SOURCE, SOURCE_CONNECTOR
from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.former_keys import FORMER_LISTS, Effect, effect_of
from sparkmirror.config.known_keys import CLIENT_NAMES, UnknownKey, names_plugin, unread_connector_keys
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.comments import comment_in, is_part
from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.quantities import some_of
from sparkmirror.policies.filters import impossible_character

UNKNOWN_KEY: Final = "unknown key"
WITHOUT_EFFECT: Final = "without effect"
NO_FLOW: Final = "no flow"
ALL_TOPICS: Final = "all topics"
COMMENT: Final = "comment"
BLANK: Final = "blank"
ENCODING: Final = "encoding"
IMPOSSIBLE: Final = "pattern without a match"

_FLOW: Final = re.compile(r"(?P<source>.+)->(?P<target>[^.]+)\..+")
_OF_GROUPS: Final = re.compile(
    r"(?:.*\.)?consumer\.(?:group\.(?:id|instance\.id|protocol|remote\.assignor)|session\.timeout\.ms"
    r"|heartbeat\.interval\.ms|max\.poll\.interval\.ms|partition\.assignment\.strategy"
    r"|enable\.auto\.commit|auto\.commit\.interval\.ms)"
)
_PRODUCER: Final = re.compile(
    r"(?P<head>(?:.+->[^.]+\.)?)(?:source\.|target\.)?producer\.(?P<name>(?!override\.).+)"
)
_OWN_CLIENT: Final = re.compile(
    r"(?P<head>(?:.+->[^.]+\.)?)(?P<client>consumer|admin)\.override\.(?P<name>.+)"
)
_SIDES: Final = ("source.cluster.", "target.cluster.")


def file_findings(config: MirrorMakerConfig) -> tuple[Finding, ...]:
    """Return the findings of a whole mm2.properties, whichever of its flows are meant."""
    given = config.properties
    vain = dict(_without_effect(given, config.clusters))
    former = dict(_former(config))
    unread = [key for key in config.unknown_keys() if key.key not in vain and key.key not in former]
    return (
        *_no_flow(config),
        *_grouped_by_text(vain, given),
        *former.values(),
        *_unread(unread, config),
        *_impossible(given),
        *text_findings(given),
        *_blanks(config),
    )


def text_findings(properties: Properties) -> Iterator[Finding]:
    """Find what looks like a comment behind a value, and what another encoding changes."""
    for key, value in properties.items():
        said = comment_in(value.rpartition(";")[2] if key.endswith("sasl.jaas.config") else value)
        if said:
            text = is_part(" #" if properties.hides(key) else said)
            yield Finding(COMMENT, Severity.WARNS, key, text, line=properties.line(key))
        yield from _encoding(properties, key)


_TOPICS: Final = re.compile(r"(?:.+->[^.]+\.)?(?P<name>topics(?:\.exclude)?)")


def _impossible(given: Properties) -> Iterator[Finding]:
    """Patterns of topics that match none, whatever topics there are."""
    if names_plugin(given):
        return
    for key, value in given.items():
        found = _TOPICS.fullmatch(key)
        items = MIRROR_SOURCE[found["name"]].parse_type(value) if found and "${" not in value else ()
        assert isinstance(items, tuple)
        for item in items:
            character = impossible_character(item)
            if character is not None:
                text = f"{item} matches no topic, since no topic's name has '{character}'"
                yield Finding(IMPOSSIBLE, Severity.WARNS, key, text, line=given.line(key))


def _encoding(properties: Properties, key: str) -> Iterator[Finding]:
    written = properties.written(key)
    if written.java_reads is not None:
        java = "" if properties.hides(key) else f", '{written.java_reads}'"
        text = f"has characters other than ASCII, read as UTF-8 here; Java reads them as Latin-1{java}"
    elif written.odd_line is not None:
        text = (
            "has characters other than ASCII, read as Latin-1, as Java does, since the file is not UTF-8 "
            f"(line {written.odd_line})"
        )
    else:
        return
    remedy = "written as \\uXXXX they mean the same in both"
    yield Finding(ENCODING, Severity.WARNS, key, text, remedy, written.line)


def connector_findings(config: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return the findings of one connector's config, as a worker is given it."""
    given = config if isinstance(config, Properties) else Properties(config)
    vain = dict(_without_effect(given, ()))
    unread = [key for key in unread_connector_keys(given) if key.key not in vain]
    former = [key for key in unread if key.key in FORMER_LISTS]
    return (
        *_grouped_by_text(vain, given),
        *(_former_finding(key.key, key.key, given, given) for key in former),
        *(_unread_of_connector(key) for key in unread if key not in former),
        *_impossible(given),
    )


def _grouped_by_text(found: Mapping[str, tuple[str, str]], given: Properties) -> Iterator[Finding]:
    """Merge the findings of all keys that have the same text."""
    keys: dict[tuple[str, str], list[str]] = {}
    for key, said in found.items():
        keys.setdefault(said, []).append(key)
    for (text, remedy), together in keys.items():
        yield Finding(
            WITHOUT_EFFECT, Severity.WARNS, some_of(together), text, remedy, _only_line(together, given)
        )


def _only_line(keys: Sequence[str], given: Properties) -> int | None:
    return given.line(keys[0]) if len(keys) == 1 else None


def _without_effect(given: Properties, clusters: Sequence[Alias]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Keys that are known and change nothing that is mirrored, each with the text and the remedy."""
    for key in given:
        producer, own = _PRODUCER.fullmatch(key), _OWN_CLIENT.fullmatch(key)
        if _OF_GROUPS.fullmatch(key):
            yield (
                key,
                (
                    "has no effect: MirrorMaker reads without a consumer group",
                    "lag.group.id names a group whose offsets show what is mirrored",
                ),
            )
        elif own is not None and (own["head"] or not clusters):
            client, name = own["client"], own["name"]
            yield (
                key,
                (
                    "has no effect, as MirrorMaker makes these clients itself, in Java too",
                    _for_client(own["head"], client, name),
                ),
            )
        elif producer is not None and (producer["head"] or not clusters):
            if producer["name"] not in PRODUCER.names - SHARED_NAMES - {"client.id"}:
                continue
            below = f"{producer['head'].rpartition('->')[2]}producer.… or " if clusters else ""
            yield (
                key,
                (
                    "has no effect on the mirrored records, only on offset syncs",
                    f"write {below}{producer['head']}producer.override.…",
                ),
            )


def _for_client(head: str, client: str, name: str) -> str:
    one_side = " or ".join(f"{head}{side}.{client}.{name}" for side in ("source", "target"))
    return f"write {head}{client}.{name}, or {one_side} for one side"


def _former(config: MirrorMakerConfig) -> Iterator[tuple[str, Finding]]:
    """Former lists that change nothing, by key: those that would are refused."""
    for flow in reversed(config.mirroring()):
        connector = config.connector_properties(flow, SOURCE_CONNECTOR)
        for name in FORMER_LISTS.keys() & connector.keys():
            key = connector.origin(name)
            yield key, _former_finding(key, name, connector, config.properties)


def _former_finding(key: str, name: str, connector: Properties, given: Properties) -> Finding:
    option = FORMER_LISTS[name].option.name
    now = connector.origin(option)
    match effect_of(name, connector):
        case Effect.NONE:
            text = (
                f"has no effect: {now} has the same value" if option in connector else f"is {now}'s default"
            )
            return Finding(WITHOUT_EFFECT, Severity.NOTE, key, text, "delete it", given.line(key))
        case Effect.OVERRIDDEN:
            text = f"no version of Java reads this, since {now} is set to another value"
            return Finding(WITHOUT_EFFECT, Severity.WARNS, key, text, "delete it", given.line(key))
        case Effect.LOST:
            text = f"nothing reads this key: called {now} since Kafka 2.7"
            return Finding(UNKNOWN_KEY, Severity.WARNS, key, text, "", given.line(key))


def _unread(unread: Iterable[UnknownKey], config: MirrorMakerConfig) -> Iterator[Finding]:
    """Keys that nothing reads, those of one kind in one finding."""
    keys: dict[tuple[str, str], list[UnknownKey]] = {}
    for each in unread:
        said = _why(each, config), "" if each.nearest is None else each.name
        keys.setdefault(said, []).append(each)
    for (text, _), together in keys.items():
        names = [each.key for each in together]
        meant = [each.nearest for each in together if each.nearest is not None]
        remedy = f"did you mean {some_of(meant)}?" if meant else ""
        line = _only_line(names, config.properties)
        yield Finding(UNKNOWN_KEY, Severity.WARNS, some_of(names), text, remedy, line)


def _why(key: UnknownKey, config: MirrorMakerConfig) -> str:
    strange = [alias for alias in _aliases(key.key) if alias not in config.clusters]
    if strange:
        listed = ", ".join(config.clusters)
        return f"nothing reads this key: {' and '.join(strange)} is not in clusters ({listed})"
    return "nothing reads this key" if key.note is None else f"nothing reads this key: {key.note}"


def _aliases(key: str) -> Sequence[str]:
    """The clusters of a key below a flow."""
    found = _FLOW.fullmatch(key)
    return () if found is None else (found["source"], found["target"])


def _unread_of_connector(key: UnknownKey) -> Finding:
    for side in _SIDES:
        name = key.key.removeprefix(side)
        clients = [client for client, names in CLIENT_NAMES.items() if name != key.key and name in names]
        if clients:
            text = (
                f"nothing reads this key, in Java neither: below {side} only bootstrap.servers, "
                "security.protocol, ssl.* and sasl.* count"
            )
            remedy = "write " + " or ".join(f"{side.partition('.')[0]}.{client}{name}" for client in clients)
            return Finding(UNKNOWN_KEY, Severity.WARNS, key.key, text, remedy)
    text = "nothing reads this key" if key.note is None else f"nothing reads this key: {key.note}"
    remedy = "" if key.nearest is None or key.note is not None else f"did you mean {key.nearest}?"
    return Finding(UNKNOWN_KEY, Severity.WARNS, key.key, text, remedy)


def _no_flow(config: MirrorMakerConfig) -> Iterator[Finding]:
    if not config.mirroring():
        flow = Flow(*config.clusters[:2]) if len(config.clusters) > 1 else "A->B"
        yield Finding(
            NO_FLOW,
            Severity.WARNS,
            "clusters",
            "no flow is enabled: nothing is mirrored, only heartbeats are emitted",
            f"set {flow}.enabled=true",
        )


def _blanks(config: MirrorMakerConfig) -> Iterator[Finding]:
    """Switches that Java reads with their blanks, so that `true ` is false, and separators with blanks."""
    given = config.properties
    for key in given:
        if config.is_false_by_blank(key):
            text = "the value ends in a blank, so that it counts as false here, as in Java"
            if any(key == f"{flow}.enabled" for flow in config.mirroring()):
                text = (
                    "the value ends in a blank, which makes it false where flows are chosen and true in the "
                    "connector: the flow mirrors although it looks disabled, as in Java"
                )
            yield Finding(BLANK, Severity.WARNS, key, text, "delete the blank", given.line(key))
        separator = key.endswith("replication.policy.separator")
        if separator and given[key].strip(JAVA_WHITESPACE) not in ("", given[key]):
            text = f"the separator is '{given[key]}', blanks included, as in Java"
            yield Finding(BLANK, Severity.WARNS, key, text, "delete the blank", given.line(key))


def all_topics(config: MirrorMakerConfig, flow: Flow) -> Iterator[Finding]:
    """A note for an enabled flow whose topics are left at the default, which is all of them."""
    if flow in config.mirroring() and not config.names_topics(flow):
        yield Finding(
            ALL_TOPICS,
            Severity.NOTE,
            f"{flow}.topics",
            f"is not set, so that every topic of {flow.source} is mirrored (.*, the default)",
        )
