import subprocess
import sys

_TWO_THREADS_COMPILE_AT_ONCE = """
import threading

{imported_first}
from kafka.protocol.metadata import ApiVersionsResponse
from kafka.protocol.schemas.fields.struct import StructField

compiling, emit = threading.Event(), StructField.emit_decode_from

def emit_slowly(self, *args, **kwargs):
    # The second thread begins while the first one is here, and continues when the first one has ended.
    if threading.current_thread() is first:
        compiling.set()
        second.join(0.5)
    else:
        first.join(5)
    return emit(self, *args, **kwargs)

def decode():
    ApiVersionsResponse.decode(frame, version=2)

StructField.emit_decode_from = emit_slowly
frame = ApiVersionsResponse(error_code=0, api_keys=[], throttle_time_ms=0).encode(version=2)
threading.excepthook = lambda _: None
first = threading.Thread(target=decode)
second = threading.Thread(target=lambda: compiling.wait() and decode())
second.start(), first.start()
first.join(), second.join()
decode()
print("decodes")
"""


def run(imported_first: str) -> str:
    """Run a process, since a codec is compiled once only."""
    program = _TWO_THREADS_COMPILE_AT_ONCE.format(imported_first=imported_first)
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return finished.stdout.strip() or finished.stderr.strip().splitlines()[-1]


def test_two_threads_may_decode_a_message_for_the_first_time() -> None:
    assert run("import sparkmirror.kafka") == "decodes"


def test_the_library_alone_still_needs_the_lock() -> None:
    """When this fails, the library is mended and `library_codecs` can go."""
    assert "weakref" in run("")
