"""Says how extras of this package are installed: from where it came, not by a name that others may take."""


def how_to_install(extra: str) -> str:
    return f"pip install '.[{extra}]' in the folder that sparkmirror was installed from"
