"""Makes the Kafka library's codecs safe for several threads.

kafka-python 3.0.12 compiles a message's codec at its first use, and while it does so the message's class is
another one. Two threads that decode a message for the first time can leave a decoder that fails for as long
as the process lives: every later connection waits for responses in vain. A lock around the compilation ends
that.
"""

import threading
from typing import Any

from kafka.protocol.schemas.fields.struct import StructField

_lock = threading.RLock()


def _locked(compiled: Any) -> Any:
    def with_lock(*args: Any, **kwargs: Any) -> Any:
        with _lock:
            return compiled(*args, **kwargs)

    return with_lock


StructField.compiled_encode_into = _locked(StructField.compiled_encode_into)
StructField.compiled_decode_from = _locked(StructField.compiled_decode_from)
