from pathlib import Path

import pytest

from sparkmirror.cli import contexts
from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.contexts import Contexts, contexts_file
from sparkmirror.cli.main import main
from sparkmirror.client.connect_rest import Access
from sparkmirror.domain.errors import ConfigError

FILE = """\
current: test
contexts:
  test:
    url: localhost:8084
  prod:
    url: https://connect-1:8083/api
    user: ops
    password_env: CONNECT_PASSWORD
    ca: {ca}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's, with something in it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ca = tmp_path / "ca.pem"
    ca.touch()
    file = contexts_file()
    file.parent.mkdir()
    file.write_text(FILE.format(ca=ca))
    return file


def access(*words: str) -> Access:
    return contexts.access_of(build_parser().parse_args(["connectors", "list", *words]))


def test_the_url_is_given_or_of_a_context_or_kafkas_default(file: Path) -> None:
    assert access("--url", "connect:1").url == "http://connect:1"
    assert access().url == "http://localhost:8084"
    file.unlink()
    assert access().url == "http://localhost:8083"
    assert access("--url", "https://[::1]:8083/connect").url == "https://[::1]:8083/connect"


def test_a_context_has_a_user_a_password_and_certificates(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECT_PASSWORD", "s3cret")
    found = access("--context", "prod")
    assert found == Access("https://connect-1:8083/api", "ops", "s3cret", tmp_path / "ca.pem")
    password = tmp_path / "password"
    password.write_text("of a file\n")
    file.write_text(file.read_text().replace("password_env: CONNECT_PASSWORD", f"password_file: {password}"))
    assert access("--context", "prod").password == "of a file"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "password_env: CONNECT_PASSWORD",
            "password: s3cret",
            "name its place by password_env or password_file",
        ),
        ("    password_env: CONNECT_PASSWORD\n", "", "needs password_env or password_file beside its user"),
        ("url: https", "uri: https", "is not known; a context has url, user"),
        ("ca: ", "ca: /nowhere", "is no file"),
        ("ca: ", "key: ", "has a key without a cert"),
        ("https:", "ftp:", "is not of the form http://HOST:PORT"),
        ("https://", "https://ops:s3cret@", "holds a password"),
        ("  prod:", "  other:", "has no context prod (it has: test, other)"),
        ("contexts:", "contexts: [", "is no YAML"),
        ("current: test", "- current", "is no YAML"),
    ],
)
def test_errors_in_the_file_are_named_without_secrets(
    file: Path, before: str, after: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECT_PASSWORD", "s3cret")
    file.write_text(file.read_text().replace(before, after))
    with pytest.raises(ConfigError) as caught:
        access("--context", "prod")
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_context_has_a_token_instead(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = file.read_text().replace("    user: ops\n", "").replace("password_env", "token_env")
    file.write_text(text)
    monkeypatch.setenv("CONNECT_PASSWORD", "t0ken")
    found = access("--context", "prod")
    assert (found.user, found.password, found.token) == (None, None, "t0ken")
    assert "t0ken" not in repr(found)
    kept = tmp_path / "token"
    kept.write_text("of.a.file\n")
    file.write_text(text.replace("token_env: CONNECT_PASSWORD", f"token_file: {kept}"))
    assert access("--context", "prod").token == "of.a.file"
    for wrong, said in (
        (text.replace("token_env", "user: ops\n    token_env"), "has both a user and a token"),
        (text.replace("token_env: CONNECT_PASSWORD", "token: t0ken"), "by token_env or token_file"),
        (text.replace("token_env: CONNECT_PASSWORD", f"token_file: {file}"), "holds no token"),
    ):
        file.write_text(wrong)
        with pytest.raises(ConfigError, match=said) as caught:
            access("--context", "prod")
        assert "t0ken" not in str(caught.value)


def test_a_variable_that_is_not_set_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONNECT_PASSWORD", raising=False)
    with pytest.raises(ConfigError, match=r"CONNECT_PASSWORD .*is no environment variable"):
        access("--context", "prod")


@pytest.mark.parametrize(
    "url", ["http://ops:s3cret@connect", "http://", "gopher://x", "http://x:none", "http://[x"]
)
def test_a_url_with_a_password_or_another_scheme_is_refused(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connectors", "list", "--url", url]) == 2
    said = capsys.readouterr().err
    assert "--url" in said
    assert "s3cret" not in said


def test_contexts_are_listed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connectors", "contexts"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "CURRENT  NAME  URL",
        "*        test  http://localhost:8084",
        "         prod  https://connect-1:8083/api",
    ]
    assert Contexts(file).current == "test"


def test_no_contexts_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["connectors", "contexts", "-o", "json"]) == 0
    said = capsys.readouterr()
    assert said.out == "[]\n"
    assert str(tmp_path / "sparkmirror" / "contexts.yaml") in said.err
