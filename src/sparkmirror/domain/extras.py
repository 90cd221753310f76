"""Says how extras of this package are installed."""


def how_to_install(extra: str) -> str:
    """Return the command for an environment that has this package: there pip looks up no such name."""
    return f"pip install 'sparkmirror[{extra}]'"
