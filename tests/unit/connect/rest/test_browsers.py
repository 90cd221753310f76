import pytest
from starlette.datastructures import MutableHeaders

from sparkmirror.connect.rest.browsers import header_rules


def applied(rules: str, **there: str) -> list[tuple[str, str]]:
    headers = MutableHeaders(there)
    for rule in header_rules(rules):
        rule.apply(headers, now=0.0)
    return headers.items()


def test_headers_are_set_and_added() -> None:
    rules = 'set X-Frame-Options:DENY, "add Cache-Control:no-cache, no-store",Add cache-control:private'
    assert applied(rules, **{"X-Frame-Options": "none"}) == [
        ("x-frame-options", "DENY"),
        ("cache-control", "no-cache, no-store"),
        ("cache-control", "private"),
    ]


def test_dates_are_set_in_milliseconds_from_now() -> None:
    assert applied("setDate Expires:31536000000") == [("expires", "Fri, 01 Jan 1971 00:00:00 GMT")]


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("set", "Invalid format of header config 'set'"),
        ("unset A:b", "Invalid header config action: 'unset'. Expected one of [set, add, setDate, addDate]"),
        ("set A", "Invalid format of header config 'set A'"),
        ("set A:b:c", "Invalid format of header config 'set A:b:c'"),
        ("set :b", "Invalid format of header config 'set :b'"),
        ("set A B:c", "Invalid format of header config 'set A B:c'"),
        ("setDate A:soon", "Milliseconds are expected"),
        ('set A:b, "set B:c', "Invalid format of header config"),
        ("set A:b,,set B:c", "Invalid format of header config ''"),
    ],
)
def test_malformed_rules_are_refused(rules: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid|Milliseconds") as raised:
        header_rules(rules)
    assert reason in str(raised.value)


def test_no_rules_add_nothing() -> None:
    assert header_rules("  ") == ()
