"""Reads command lines of processes that may end at any moment."""

import psutil


def words_of(process: psutil.Process) -> list[str]:
    """Return the words of its command line; none after its end."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def command_line(process: psutil.Process) -> str:
    return " ".join(words_of(process))
