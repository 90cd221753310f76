"""Defines types of arguments that several commands take."""

import argparse


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
