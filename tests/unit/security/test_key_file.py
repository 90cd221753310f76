"""Private keys on their way to OpenSSL."""

import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.security.tls_context import key_file
from tests.support.certificates import PASSWORD, authority, write

BUILD: Final = """\
import os, sys
writes = []
def hook(event, arguments):
    if event == "open" and not isinstance(arguments[0], int):
        path, mode, flags = arguments
        if (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or set(mode or "r") & set("wax+"):
            writes.append(str(path))
    elif event in ("os.mkdir", "os.link", "os.rename", "os.symlink", "tempfile.mkstemp", "tempfile.mkdtemp"):
        writes.append(event)
from sparkmirror.domain.tls import Store, TlsSettings
from sparkmirror.security.tls_context import client_context
from pathlib import Path
import cryptography.hazmat.primitives.serialization.pkcs12
pem, pkcs12 = sys.argv[1:]
text = Path(pem).read_text()
sys.addaudithook(hook)
for store in (
    Store("ssl.keystore", "PEM", text=text),
    Store("ssl.keystore", "PEM", pem),
    Store("ssl.keystore", "PKCS12", pkcs12, password="%s"),
):
    client_context(TlsSettings(key_store=store))
print(writes)
"""


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files in memory are Linux's")
def test_no_file_is_written_while_contexts_are_made(tmp_path: Path) -> None:
    own = authority("own")
    pem = write(tmp_path / "own.pem", own.key_pem() + own.certificate_pem())
    pkcs12 = write(tmp_path / "own.p12", own.pkcs12(PASSWORD, own))
    command = [sys.executable, "-B", "-c", BUILD % PASSWORD, pem, pkcs12]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def test_elsewhere_the_file_is_this_users_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = authority("own")
    with key_file(own.key_pem() + own.certificate_pem()) as file:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(file)
    assert not list(tmp_path.iterdir())
