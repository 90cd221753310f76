"""The program for `spark-submit`, which takes a file: `spark-submit $(sparkmirror submit-file) run FILE`."""

import os
import sys

if __name__ == "__main__":
    # Python puts the program's folder first, where `copy` and others would be found before Python's own.
    _own = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would import these
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _own]  # noqa: PTH100 - likewise

    from sparkmirror.cli.main import main

    sys.exit(main())
