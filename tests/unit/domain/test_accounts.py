import base64
import hashlib
import hmac

import pytest

from sparkmirror.domain.accounts import (
    CLIENT_ID,
    USER,
    QuotaChange,
    QuotaEntity,
    ScramCredential,
    ScramMechanism,
    salted,
)

# RFC 7677, section 3: the messages of user and server, and the client proof.
RFC_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
RFC_TALK = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)
RFC_PROOF = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")


def test_salted_password_gives_the_client_proof_of_rfc_7677() -> None:
    credential = ScramCredential("user", ScramMechanism.SCRAM_SHA_256, 4096)
    made = salted(credential, "pencil", RFC_SALT)
    client_key = hmac.digest(made.salted_password, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(client_key).digest(), RFC_TALK, "sha256")
    assert bytes(one ^ other for one, other in zip(client_key, signature, strict=True)) == RFC_PROOF


@pytest.mark.parametrize(
    ("mechanism", "size"), [(ScramMechanism.SCRAM_SHA_256, 32), (ScramMechanism.SCRAM_SHA_512, 64)]
)
def test_a_secret_is_never_printed(mechanism: ScramMechanism, size: int) -> None:
    made = salted(ScramCredential("alice", mechanism, 4096), "größe", b"grain")
    assert len(made.salted_password) == size
    assert "alice" in repr(made)
    assert not {"grain", "größe", repr(made.salted_password)} & set(repr(made).split("'"))
    assert "salt" not in repr(made)


def test_changes_of_accounts_have_readable_texts() -> None:
    entity = QuotaEntity(((CLIENT_ID, "app"), (USER, None)))
    assert str(entity) == "client-id app, user <default>"
    change = QuotaChange(entity, (("producer_byte_rate", 1048576.0), ("request_percentage", 12.5)))
    assert str(change) == (
        "client-id app, user <default>: producer_byte_rate=1.04858e+06, request_percentage=12.5"
    )
    credential = ScramCredential("alice", ScramMechanism.SCRAM_SHA_512, 8192)
    assert str(credential) == "user alice (SCRAM-SHA-512, 8192 iterations)"
