import pytest

from sparkmirror.connect.rest.paths import canonical_path, encoded
from sparkmirror.domain.connect import ConnectError


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("", "/"),
        ("/", "/"),
        ("/connectors/", "/connectors"),
        ("/connectors/a%2fb", "/connectors/a%2Fb"),
        ("/connectors/a+b", "/connectors/a+b"),
        ("/connectors/%68b", "/connectors/hb"),
        ("/connectors/hb;x=1;y/status", "/connectors/hb/status"),
        ("/connectors/..", "/connectors/.."),
        ("/connectors/%2E%2e/status", "/connectors/../status"),
        ("http://a-proxy:1/connectors", "/connectors"),
        ("/connectors/http://x", None),
        ("//connectors", None),
        ("/connectors//status", None),
        ("/connectors/%zz", None),
        ("/connectors/%", None),
        ("/connectors/%ff", None),
        ("/connectors/%00", None),
        ("/connectors/%0A", None),
    ],
)
def test_paths_become_canonical_or_are_refused(raw: str, canonical: str | None) -> None:
    if canonical is not None:
        assert canonical_path(raw) == canonical
        return
    with pytest.raises(ConnectError) as raised:
        canonical_path(raw)
    assert raised.value.status == 400


def test_names_with_any_characters_survive_encoding() -> None:
    for name in ("a/b", "%", "é€😀", "..", "a;b", "?#", "+ ", "\\"):
        assert canonical_path(f"/connectors/{encoded(name)}") == f"/connectors/{encoded(name)}"
