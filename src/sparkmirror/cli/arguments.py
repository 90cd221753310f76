"""Defines types of arguments that several commands take."""

import argparse
from pathlib import Path


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def not_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is negative")
    return number


def not_empty(text: str) -> str:
    """Refuse an empty name: a REST path, or a request, without one would mean something else."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it can't be empty")
    return text


def is_url(text: str) -> bool:
    """Whether an argument that may be something else means the URL of an API."""
    return text.startswith(("http://", "https://"))


def mirror_file(text: str) -> Path:
    """The path of a mirror's file; of a URL the message says which commands take one."""
    if is_url(text):
        raise argparse.ArgumentTypeError(
            f"{text} is a URL, and this command asks both clusters, which the mirror's file names; status, "
            "lag and top take a URL, and plan takes --url"
        )
    return Path(text)


def input_file(text: str) -> Path:
    """The path of a file to be read; of a URL the message says how its connectors become files."""
    if is_url(text):
        raise argparse.ArgumentTypeError(
            f"{text} is a URL, and files are read here: curl -o NAME.json {text.rstrip('/')}/connectors/NAME"
            " writes a connector of a worker to one"
        )
    return Path(text)
