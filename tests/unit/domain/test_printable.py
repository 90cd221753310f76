import json

from sparkmirror.domain.printable import printable, printable_json

HOSTILE = "group \x1b[2J\r\n\x07\x9b2J\u202ekcab\u2028\U000e0001 größer"


def test_what_a_terminal_would_interpret_is_escaped() -> None:
    shown = printable(HOSTILE)
    assert shown.isprintable()
    assert shown == r"group \x1b[2J\r\n\x07\x9b2J\u202ekcab\u2028\U000e0001 größer"
    assert printable("größer") == "größer"


def test_json_has_the_same_content_and_nothing_that_a_terminal_would_interpret() -> None:
    text = printable_json({HOSTILE: [HOSTILE]}, indent=2)
    assert json.loads(text) == {HOSTILE: [HOSTILE]}
    assert text.replace("\n", "").isprintable()
    assert "größer" in text
