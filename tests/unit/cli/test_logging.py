import io
import json
import logging

import pytest

from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.logging import JsonFormatter, LogFormat, TextFormatter, configure_logging

ABOUT = {"flow": "a->b", "connector": "MirrorSourceConnector"}


def record(message: str, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "sparkmirror.run", "levelname": "WARNING", "msg": message, **extra})
    made.created = 1700000000.123
    return made


def lines(log_format: LogFormat) -> list[str]:
    stream = io.StringIO()
    configure_logging(log_format, stream)
    logging.getLogger("sparkmirror.run").info("started in %.1f s", 1.25, extra=ABOUT)
    logging.getLogger("kafka.conn").info("noise")
    logging.getLogger("py4j.clientserver").info("noise")
    logging.getLogger("kafka.conn").error("told in our words too")
    logging.getLogger().info("how Py4J mourns its JVM")
    return stream.getvalue().splitlines()


def test_text_has_time_level_and_flow() -> None:
    line = TextFormatter().format(record("partition lost", **ABOUT))
    date, time, rest = line.split(" ", 2)
    assert date in {"2023-11-14", "2023-11-15"}  # in local time
    assert len(time) == len("12:00:00.123")
    assert time.endswith(".123")
    assert rest == "WARNING [a->b MirrorSourceConnector] partition lost"


def test_a_connector_named_after_its_flow_does_not_repeat_it() -> None:
    line = TextFormatter().format(record("x", flow="a->b", connector="a->b.MirrorSourceConnector"))
    assert line.endswith("WARNING [a->b MirrorSourceConnector] x")


def test_libraries_that_log_what_they_send_are_never_shown_doing_it() -> None:
    stream = io.StringIO()
    configure_logging("text", stream)
    for name in ("py4j.clientserver", "botocore.parsers", "kafka.conn"):
        logger = logging.getLogger(name)
        before = logger.level
        try:
            logger.setLevel(logging.DEBUG)
            logger.debug("what is sent")
            logger.info("what happens")
        finally:
            logger.setLevel(before)
    said = [line.split(" ", 1)[1] for line in stream.getvalue().splitlines()]
    assert [line.split()[-1] for line in said] == ["happens", "happens", "sent", "happens"]


def test_text_without_a_flow() -> None:
    assert TextFormatter().format(record("hello")).endswith(" WARNING hello")


def test_a_line_holds_no_control_characters_of_names() -> None:
    line = TextFormatter().format(record("group \x1b[2J\nx\u202e is translated"))
    assert line.endswith(r"group \x1b[2J\nx\u202e is translated")


def test_json_has_everything_in_one_line() -> None:
    assert json.loads(JsonFormatter().format(record("two\nlines", **ABOUT, partition=7, key=b"k"))) == {
        "time": "2023-11-14T22:13:20.123+00:00",
        "level": "WARNING",
        "logger": "sparkmirror.run",
        "message": "two\nlines",
        "flow": "a->b",
        "connector": "MirrorSourceConnector",
        "partition": 7,
        "key": "b'k'",
    }


def test_an_exception_is_part_of_the_line() -> None:
    try:
        int("no number")
    except ValueError as error:
        failed = record("bug", exc_info=(type(error), error, error.__traceback__))
    assert json.loads(JsonFormatter().format(failed))["exception"].endswith("'no number'")
    assert TextFormatter().format(failed).endswith("'no number'")


def test_libraries_are_not_logged() -> None:
    assert [line.split(" ", 2)[2] for line in lines("text")] == [
        "INFO    [a->b MirrorSourceConnector] started in 1.2 s"
    ]
    assert [json.loads(line)["message"] for line in lines("json")] == ["started in 1.2 s"]


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        ([], ["info", "warning"]),
        (["-v"], ["debug", "info", "warning"]),
        (["--log-level", "warning"], ["warning"]),
    ],
)
def test_the_command_line_chooses_the_least_important_lines(options: list[str], levels: list[str]) -> None:
    arguments = build_parser(["run"]).parse_args(["run", "mm2.properties", *options])
    stream = io.StringIO()
    configure_logging("json", stream, level=arguments.log_level)
    for level in ("debug", "info", "warning"):
        logging.getLogger("sparkmirror.run").log(getattr(logging, level.upper()), level)
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == levels
