"""Generated login modules are read here as by Kafka's Java clients, or refused."""

import base64
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sparkmirror.clusters import find_java
from sparkmirror.config.jaas import JaasEntry, parse_jaas
from sparkmirror.java.jars import ensure_jars, kafka_jars

_PROGRAM: Final = Path(__file__).with_name("JaasOptions.java")
_FAST_START: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_VALUES: Final = (
    *("a", "b.C", "$x", "_", "e-f", "\u00e9", "\u4e2d\U0001f600", "a\xa0b"),
    *(
        '"quoted"',
        "'it'",
        '"\\"\\\\ \\n\\t\\x"',
        '"\\101\\377\\4001"',
        '"a;b=c"',
        '"//"',
        "'/*'",
        '"\x01"',
        '""',
    ),
)
_PIECES: Final = (
    *(*_VALUES, "-d", "12", "-1", "-.5", "1.2.3", ".5", "..", "'open", '"open', "\\", "//", "/*", "*/", "/"),
    *("# x", "\n", "\r", "\t", "\x01", "\x7f", "\x9f", "+", ",", ":", "{", "}"),
)
_WRITTEN: Final = (
    'PlainLoginModule required username="$ConnectionString" password="Endpoint=sb://x/;SharedAccessKey=a/+=";',
    "PlainLoginModule Required username=token password=am_b-1;",
    "ScramLoginModule REQUISITE username='a,b=c' password=\"it's\" tokenauth=true ;",
    "IAMLoginModule optional awsProfileName=\"ops\" awsRoleArn='arn:aws:iam::1:role/m';",
    'Krb5LoginModule sufficient useKeyTab=true keyTab="/etc/k.keytab" principal="mirror@EXAMPLE.TEST";',
)


def generated(count: int, seed: int) -> list[str]:
    """Most have the form of a login module, some with something else somewhere."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        words = [chance.choice(("Module", "b.C")), chance.choice(("required", "OPTIONAL", "Sufficient"))]
        for number in range(chance.randint(0, 3)):
            words += [f"name{number}", "=", chance.choice((*_VALUES, *_VALUES, *_PIECES))]
        words.append(";")
        for _ in range(chance.choice((0, 0, 0, 1, 2))):
            words.insert(chance.randint(0, len(words)), chance.choice((*_PIECES, "=", ";", "required")))
        made.append("".join(word + chance.choice(("", " ", " ", " ", "\n")) for word in words))
    return made


def read_by_java(configs: Sequence[str]) -> list[JaasEntry | None]:
    """None where it refuses."""
    jars = ensure_jars(kafka_jars())
    command = [find_java().executable, *_FAST_START, "-cp", f"{jars}/*", str(_PROGRAM)]
    asked = "".join(f"={base64.b64encode(config.encode()).decode()}\n" for config in configs)
    ended = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return [_entry(line) for line in ended.stdout.splitlines()]


def _entry(line: str) -> JaasEntry | None:
    if line == "refused":
        return None
    module, *options = (base64.b64decode(word[1:]).decode() for word in line.split(" "))
    return JaasEntry(module, dict(zip(options[::2], options[1::2], strict=True)))


def read_here(config: str) -> JaasEntry | None:
    try:
        return parse_jaas(config)
    except ValueError:
        return None


def test_login_modules_are_read_as_in_java() -> None:
    configs = [*_WRITTEN, *generated(4000, seed=21)]
    java = read_by_java(configs)
    differing = [
        f"{config!r}: Java reads {there}, here it is {here}"
        for config, there in zip(configs, java, strict=True)
        if (here := read_here(config)) is not None and here != there
    ]
    assert differing == []
    # Otherwise the comparison would prove little.
    assert sum(entry is None for entry in java) > len(java) / 4
    assert sum(read_here(config) is not None for config in configs) > len(configs) / 4
    assert [read_here(config) for config in _WRITTEN] == java[: len(_WRITTEN)]
    assert None not in java[: len(_WRITTEN)]
