"""How this project's own records hold values: JSON without spaces, in UTF-8."""

import json


def compact_json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
