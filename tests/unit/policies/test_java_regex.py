"""Matches equal those of java.util.regex in JDK 25; in JDK 17 `\\b` also regards non-ASCII letters."""

import re
import threading
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.java_regex import compile_list


def matches(pattern: str, text: str) -> bool:
    return bool(compile_list([pattern], "topics").fullmatch(text))


MATCHING = [
    (".*", ["", "orders", "a.b-c_d"], ["a\n", "\r", "a\u0085b", "\u2028"]),
    ("a|b", ["a", "b"], ["ab", "xa"]),
    ("a|ab", ["a", "ab"], []),
    ("orders\\..*", ["orders.", "orders.v1"], ["orders", "ordersXv1"]),
    ("\\Qa.b\\E.*", ["a.b", "a.bc"], ["axb"]),
    ("\\Qa.b", ["a.b"], ["axb"]),
    ("\\Qab\\E+", ["ab", "abbb"], ["abab"]),
    ("\\w+", ["a_9"], ["é", "a-b"]),
    ("\\W", ["é", "-"], ["_"]),
    ("\\d+", ["0123"], ["\u0663"]),
    ("\\s", [" ", "\x0b"], ["\xa0"]),
    ("(?i)abc", ["abc", "ABC", "aBc"], []),
    ("(?i)k", ["k", "K"], ["\u212a"]),
    ("(?i)é", ["é"], ["É"]),
    ("a(?i)b|c", ["ab", "aB", "c", "C"], ["AB"]),
    ("(?:a(?i)b|c)d", ["abd", "aBd", "Cd"], ["aBD"]),
    ("(?i:a)b", ["Ab"], ["AB"]),
    ("(?i)[^a]", ["b"], ["a", "A"]),
    ("(?i)[x-z]", ["Y"], ["A"]),
    ("(?i)\\p{Lower}", ["a", "A"], ["1"]),
    ("\\p{Alpha}+", ["aZ"], ["é", "1"]),
    ("\\p{Punct}+", ["!-._~"], ["a"]),
    ("[\\p{Upper}\\d]+", ["A1"], ["a"]),
    ("[]a]+", ["]a"], ["b"]),
    ("[^]a]", ["b"], ["]", "a"]),
    ("[\\w-.]+", ["a-b.c"], ["a/b"]),
    ("[a-]+", ["a-"], ["b"]),
    ("[--0]+", ["-./0"], ["1"]),
    ("[a&b]+", ["a&b"], ["c"]),
    ("[.*+?]+", [".*+?"], ["a"]),
    ("a{2}", ["aa"], ["a", "aaa"]),
    ("a{1,2}?", ["a", "aa"], ["aaa"]),
    ("(?!__).*", ["a__"], ["__a"]),
    (".*(?<!-internal)", ["a"], ["a-internal"]),
    ("(?=a).b?", ["a", "ab"], ["b"]),
    (".*(?<=(?:a|b)c)", ["ac", "xbc"], ["c"]),
    ("^a$", ["a"], ["b", "a\n"]),
    ("a$\\n", ["a\n"], ["a"]),
    ("\\-\\_\\.\\é", ["-_.é"], []),
    ("a#b c", ["a#b c"], []),
    ("}]", ["}]"], []),
    ("", [""], ["a"]),
    ("|a", ["", "a"], ["b"]),
]


@pytest.mark.parametrize(("pattern", "texts", "others"), MATCHING)
def test_pattern_matches_the_same_texts_as_in_java(pattern: str, texts: list[str], others: list[str]) -> None:
    assert [text for text in texts if not matches(pattern, text)] == []
    assert [text for text in others if matches(pattern, text)] == []


REFUSED_BY_JAVA = [
    *[
        "*",
        "a**",
        "|*",
        "(*)",
        "?a",
        "a+++",
        "(?i)*",
        "a{",
        "a{x}",
        "a{,3}",
        "a{3,2}",
        "a{1",
        "a{99999999999}",
    ],
    *["(", ")", "a)", "(a", "(?", "(?<n>a)(?<n>b)", "(?<1>a)", "(?$a)", "(?#a)", "(?P<n>a)", "(?q)a"],
    *["(?<=(a|b){2})", "(?<!(?:ab|cd){0})", "(?<=((?:a|b)c){2})", "(?<=((){1,2}){2})"],
    *["[", "[]", "[^]", "[a", "[b-a]", "[a-\\d]", "[[a]"],
    *[
        "\\",
        "\\y",
        "\\E",
        "\\i",
        "\\x1",
        "\\x{110000}",
        "\\x{}",
        "\\u12",
        "\\08",
        "\\p",
        "\\p{",
        "\\p{Foo}",
        "\\p{}",
    ],
]


@pytest.mark.parametrize("pattern", REFUSED_BY_JAVA)
def test_pattern_invalid_in_java_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        compile_list([pattern], "topics")


NOT_SUPPORTED = {
    "[a&&[^b]]": "class intersection '&&' is not supported, near index 2",
    "[a-z&&[^x]].*": "class intersection '&&' is not supported, near index 4",
    "[a[bc]]+": "a class in a class is not supported, near index 2",
    "a++b": "possessive quantifier '++' is not supported, near index 2",
    "(a|ab){2}+": "possessive quantifier '{2}+' is not supported, near index 9",
    "(?>a|ab)c": "atomic group '(?>' is not supported, near index 0",
    "(?<part>a|b)c": "named group '(?<part>' is not supported, near index 0",
    "(.)\\1": "back reference '\\1' is not supported, near index 3",
    "(?s).*": "group '(?s)' is not supported, near index 0",
    "(?m)^a$": "group '(?m)'",
    "(?x)a b": "group '(?x)'",
    "(?iu)a": "group '(?iu)'",
    "(?i)a(?-i)b": "group '(?-i)' is not supported, near index 5",
    "(?U:\\w)": "group '(?U:'",
    "\\p{L}+": "character property '\\p{L}' is not supported, near index 0",
    "\\p{Lu}.*": "character property '\\p{Lu}'",
    "\\pL": "character property '\\pL'",
    "\\P{Alpha}": "character property '\\P{Alpha}'",
    "[\\p{IsGreek}]": "character property '\\p{IsGreek}' is not supported, near index 1",
    "a\\b.b": "escape '\\b' is not supported, near index 1",
    "\\x41": "escape '\\x'",
    "\\h": "escape '\\h'",
    "\\Ga": "escape '\\G'",
    "\\X": "escape '\\X'",
    "\\R": "escape '\\R'",
    "a\\Z": "escape '\\Z'",
    "[\\Qa\\E]": "escape '\\Q'",
    "(?<=a|bc)d": "look-behind",
    "(?<=a*)b": "a repetition in a look-behind is not supported, near index 6",
    "^*": "nothing to repeat before '*', near index 1",
    "{2}": "nothing to repeat before '{2}', near index 0",
    "a{x}": "repetition '{x}' is not supported, near index 1",
}


@pytest.mark.parametrize(("pattern", "construct"), NOT_SUPPORTED.items())
def test_construct_that_is_not_supported_is_refused_with_its_position(pattern: str, construct: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(construct)) as caught:
        compile_list([pattern], "groups")
    assert (caught.value.key, caught.value.value) == ("groups", pattern)


def test_a_pattern_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ConfigError, match="too deeply"):
        compile_list(["(" * 5000 + ")" * 5000], "groups")


REAL = [
    (".*[\\-\\.]internal", ["mm2-configs.a.internal", "a-internal"], ["internal", "a.internals"]),
    (".*\\.replica", ["a.replica"], ["a-replica"]),
    ("console-consumer-.*", ["console-consumer-1"], ["consumer"]),
    ("^[\\w]*", ["orders_1", ""], ["orders-1"]),
    ('"*.internal', ["xinternal", '"""xinternal'], ["a.internal", '"*.internal']),
    ('cluster1.*"', ['cluster1."'], ["cluster1.orders"]),
    (".apicurio", ["xapicurio"], ["apicurio", "my.apicurio"]),
    ("^(?!us-west\\.).*", ["orders", "us-east.orders"], ["us-west.orders"]),
    ("^(?!__.*)(?!.*\\.internal).*", ["orders"], ["__a", "a.internal"]),
    ("^(?!recommendations$).*", ["recommendations2", "orders"], ["recommendations"]),
    ("^$", [""], ["a"]),
    ("orders_[0-9]{4}", ["orders_2024"], ["orders_24"]),
    ("(eu|us)\\.orders", ["eu.orders"], ["euXorders"]),
    ("(?i)ORDERS", ["orders", "Orders"], ["order"]),
    ("\\Qa.b\\E", ["a.b"], ["axb"]),
    ("orders.*   # all of them", ["orders1   # all of them"], ["orders", "orders1"]),
    ("min\\.insync\\.replicas", ["min.insync.replicas"], ["min-insync-replicas"]),
    ("retention\\.ms", ["retention.ms"], ["retention"]),
]
"""Patterns of files that people run."""


@pytest.mark.parametrize(("pattern", "texts", "others"), REAL)
def test_patterns_of_real_files_select_what_java_selects(
    pattern: str, texts: list[str], others: list[str]
) -> None:
    assert [text for text in texts if not matches(pattern, text)] == []
    assert [text for text in others if matches(pattern, text)] == []


def test_an_empty_list_matches_nothing() -> None:
    pattern = compile_list([], "topics")
    assert not pattern.fullmatch("")
    assert not pattern.fullmatch("a")


def test_groups_of_list_items_do_not_affect_each_other() -> None:
    pattern = compile_list(["a", "(?i)b", "c"], "topics")
    matched = [text for text in ("a", "A", "B", "C", "ab") if pattern.fullmatch(text)]
    assert matched == ["a", "B", "C"]
    assert compile_list(["(a", "b)c"], "topics").fullmatch("bc"), "one regex, not one for each item"


TOPIC = st.text("abcXYZ019._-", min_size=1, max_size=12)


@given(st.lists(TOPIC.filter(str.isalnum), max_size=5), TOPIC)
def test_a_list_of_plain_names_matches_exactly_those(names: list[str], topic: str) -> None:
    assert bool(compile_list(names, "topics").fullmatch(topic)) == (topic in names)


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5), st.text(max_size=8))
def test_quoted_items_match_exactly_themselves(names: list[str], text: str) -> None:
    pattern = compile_list([f"\\Q{name.replace(chr(92), '')}\\E" for name in names], "topics")
    assert bool(pattern.fullmatch(text)) == (text in [name.replace("\\", "") for name in names])


@given(st.text("ab.", max_size=6), st.text("ab.", max_size=6), st.text("ab.", max_size=10))
def test_prefix_pattern_matches_names_with_the_prefix(prefix: str, suffix: str, topic: str) -> None:
    pattern = compile_list([f"\\Q{prefix}\\E.*{suffix.replace('.', '[.]')}"], "topics")
    expected = topic.startswith(prefix) and topic[len(prefix) :].endswith(suffix)
    assert bool(pattern.fullmatch(topic)) == expected


@given(st.text("ab1.\\*+?{}[]()|^$-&,:<=!09dpPQExNkR# \né", max_size=40), st.text("ab1.\n", max_size=30))
def test_any_text_is_matched_or_refused_soon(pattern: str, name: str) -> None:
    before = time.process_time()
    with suppress(ConfigError):
        compile_list([pattern], "topics").fullmatch(name)
    assert time.process_time() - before < 2


def test_a_match_that_takes_too_long_ends_in_an_error_that_names_option_pattern_and_name() -> None:
    pattern = compile_list(["orders", "(.|.)*[!?]"], "topics")
    assert pattern.fullmatch("orders!")
    with pytest.raises(ConfigError) as caught:
        pattern.fullmatch("a" * 40)
    assert (caught.value.key, caught.value.value) == ("topics", "orders|(.|.)*[!?]")
    assert f"matching it with '{'a' * 40}' takes more than 0.2 s" in str(caught.value)


def test_other_threads_run_while_a_match_takes_long() -> None:
    pattern = compile_list(["(.|.)*[!?]"], "topics")

    def match() -> None:
        with pytest.raises(ConfigError):
            pattern.fullmatch("a" * 40)

    matching = threading.Thread(target=match)
    matching.start()
    pauses = []
    while matching.is_alive():
        before = time.perf_counter()
        matching.join(0.001)
        pauses.append(time.perf_counter() - before)
    # One or two if the match holds it all the time, more than a hundred on a quiet machine.
    assert len(pauses) > 3, "the match held the interpreter's lock"


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("(a|a)*[!?]", "a" * 40),
        ("(a*)*[!?]", "a" * 40),
        (".*.*.*.*.*.*[!?]", "a" * 249),
        ("|".join([".*.*[!?]"] * 2000), "a" * 249),
        ("(a|b)(a|a)(a|a)" * 10 + "[!?]", "a" * 30),
        ("(?:.*.*){3}[!?]", "a" * 249),
        (".*.*[!?]", "a" * 30_000),
    ],
    ids=["choice", "repetition", "row", "list", "groups", "counted", "long name"],
)
def test_each_way_to_backtrack_ends_soon(pattern: str, name: str) -> None:
    compiled = compile_list([pattern], "groups")
    before = time.process_time()
    with suppress(ConfigError):
        assert not compiled.fullmatch(name)
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(((a{1000}){1000}){1000}){1000}", "repetitions add up"),
        ("(((){1000}){1000}){1000}", "repetitions add up"),
        ("a{2147483647}", "repetitions add up"),
        ("a{0,2147483647}", "repetitions add up"),
    ],
    ids=["nested", "empty", "fixed", "range"],
)
def test_a_pattern_that_grows_in_translation_is_refused(pattern: str, reason: str) -> None:
    before = time.process_time()
    with pytest.raises(ConfigError, match=reason):
        compile_list([pattern], "topics")
    assert time.process_time() - before < 2


def test_a_class_of_many_separate_characters_is_read_in_linear_time() -> None:
    before = time.process_time()
    pattern = compile_list(["[" + "".join(map(chr, range(0x3400, 0x9FFF, 2))) + "]"], "topics")
    assert pattern.fullmatch("\u3402")
    assert time.process_time() - before < 2
