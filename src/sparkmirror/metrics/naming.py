"""Makes metrics of MBeans under everybody's names: those of rules, or of Strimzi's metrics reporter.

What a name is made of does not change from page to page, so it is made once for each attribute of an MBean.

Pure.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from sparkmirror.metrics.exposition import Written, head_of
from sparkmirror.metrics.jmx_rules import NamedAttribute
from sparkmirror.metrics.mbeans import MBean, Properties

_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_]")
_RESERVED: Final = re.compile(r"(_total|_created|_bucket|_info)+\Z")

Name = Callable[[MBean, str, float | str], tuple[NamedAttribute | None, bool]]
"""The sample of an MBean's attribute, None for none; and whether that is the same whatever its value is."""


class _Known(NamedTuple):
    """Keeps the name that an attribute got; `head` is the sample's name and labels as written."""

    head: str
    name: str
    kind: str
    factor: float
    value: float | None
    attribute: NamedAttribute


_Slot = _Known | Literal[False] | None
"""A cached answer. None: no sample. False: rules depend on the value, and are applied each time."""


class Naming:
    """Names the attributes of one page at a time. Not thread-safe."""

    def __init__(self, name: Name) -> None:
        self._name = name
        self._known: dict[tuple[str, Properties, tuple[str, ...]], list[_Slot]] = {}

    def metrics(self, beans: Iterable[MBean]) -> Iterator[Written]:
        """Yield each metric once, in the order in which they appear first. Raises ConfigError."""
        found: dict[str, list[tuple[_Known, float]]] = {}
        known, used = self._known, {}
        for bean in beans:
            key = bean.domain, bean.properties, bean.attributes
            slots = known.get(key)
            if slots is None:
                slots = self._slots(bean)
            used[key] = slots
            for slot, attribute, value in zip(slots, bean.attributes, bean.values, strict=True):
                its = self._now(bean, attribute, value) if slot is False else slot
                if not its:
                    continue
                number = value if its.value is None else its.value
                if not isinstance(number, str):
                    samples = found.get(its.name)
                    if samples is None:
                        samples = found[its.name] = []
                    samples.append((its, number))
        self._known = used
        return map(_written, found.values())

    def _slots(self, bean: MBean) -> list[_Slot]:
        slots: list[_Slot] = []
        for attribute, value in zip(bean.attributes, bean.values, strict=True):
            named, is_fixed = self._name(bean, attribute, value)
            slots.append(_slot(named) if is_fixed else False)
        return slots

    def _now(self, bean: MBean, attribute: str, value: float | str) -> _Slot:
        return _slot(self._name(bean, attribute, value)[0])


def _slot(named: NamedAttribute | None) -> _Known | None:
    if named is None:
        return None
    head = head_of(named.name, named.labels)
    return _Known(head, named.name, named.kind, named.factor, named.value, named)


def _written(samples: Sequence[tuple[_Known, float]]) -> Written:
    """Write as the exporter does: different types are left out; equal labels get the MBean's name, too."""
    first = samples[0][0].attribute
    kinds = {its.kind for its, _ in samples}
    if len({its.head for its, _ in samples}) < len(samples):
        samples = [(its._replace(head=_with_origin(its.attribute)), number) for its, number in samples]
    values = [(its.head, number if its.factor == 1.0 else number * its.factor) for its, number in samples]
    return Written(first.name, first.help, kinds.pop() if len(kinds) == 1 else "untyped", values)


def _with_origin(made: NamedAttribute) -> str:
    return head_of(made.name, (*made.labels, ("_objectname", made.origin)))


def as_the_reporter(bean: MBean, attribute: str, value: float | str) -> tuple[NamedAttribute | None, bool]:
    """Strimzi's metrics reporter: prefix, group and name; tags are labels, and texts become `…_info`."""
    (_, group), *tags = bean.properties
    prefix = _RESERVED.sub("", _UNSAFE.sub("_", f"{bean.domain}_{group}_{attribute}").lower())
    labels = tuple((_UNSAFE.sub("_", key), text) for key, text in tags)
    if isinstance(value, str):
        labels = tuple({_UNSAFE.sub("_", attribute): value, **dict(labels)}.items())
        return NamedAttribute(f"{prefix}_info", labels, "gauge", prefix, 1.0, 1.0, prefix), False
    return NamedAttribute(prefix, labels, "gauge", prefix, None, 1.0, prefix), True
