"""Writes the log to standard error, as text or as JSON lines.

Attributes given as `extra` are kept: text has `flow` and `connector` before the message, JSON has all.
"""

import logging
import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Literal, TextIO

from sparkmirror.domain.printable import printable, printable_json

LogFormat = Literal["text", "json"]

LEVELS = ("debug", "info", "warning", "error")
_CHATTY_LIBRARIES = ("kafka", "py4j")
"""Libraries whose failures are raised as errors, which are logged once, by us."""
_INDISCREET_LIBRARIES = ("py4j", "botocore")
"""Below INFO they log what they send and receive: Spark's settings, the JVM's token, credentials of AWS."""
_PLAIN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"asctime", "message", "taskName"}


def add_logging_arguments(parser: ArgumentParser) -> None:
    """Add what `configure_logging` takes."""
    parser.add_argument(
        "--log-format",
        choices=["text", "json"],
        default="text",
        help="text, or one JSON object per line (default: text)",
    )
    parser.add_argument(
        "--log-level",
        choices=LEVELS,
        default="info",
        help="the least important lines to log (default: info)",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        dest="log_level",
        action="store_const",
        const="debug",
        help="as --log-level debug: also each connection, and how long each job took",
    )


def configure_logging(log_format: LogFormat, stream: TextIO | None = None, *, level: str = "info") -> None:
    """Send every logger of this process to one handler, replacing earlier handlers."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    handler.addFilter(_is_wanted)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _CHATTY_LIBRARIES:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _is_wanted(record: logging.LogRecord) -> bool:
    """Whether a line may be written, whatever level is set by `/admin/loggers`."""
    if record.levelno < logging.INFO and record.name.partition(".")[0] in _INDISCREET_LIBRARIES:
        return False
    # Py4J logs to the root logger, with a stack trace, when the JVM is gone; our loggers have names.
    return record.name != "root"


class TextFormatter(logging.Formatter):
    """`2026-11-24 12:00:00.123 INFO    [source->target MirrorSourceConnector] message`, in local time."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        flow, connector = (str(vars(record).get(key, "")) for key in ("flow", "connector"))
        about = f"{flow} {connector.removeprefix(f'{flow}.')}".strip()  # Strimzi's names begin with the flow
        place = f"[{about}] " if about else ""
        line = f"{time} {record.levelname:<7} {place}{printable(record.getMessage())}"
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        return f"{line}\n{trace}" if trace else line


class JsonFormatter(logging.Formatter):
    """Writes an object per line: time (ISO 8601), level, logger, message, extra attributes, exception."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        content = {key: value for key, value in vars(record).items() if key not in _PLAIN_ATTRIBUTES}
        content |= {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return printable_json(content)
