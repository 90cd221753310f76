from pathlib import Path

import pytest

from sparkmirror.cli import rest_access
from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.main import main
from sparkmirror.client.connect_rest import Access
from sparkmirror.domain.errors import ConfigError


def access(*words: str | Path) -> Access:
    arguments = build_parser().parse_args(["connectors", "list", *map(str, words)])
    return rest_access.access_of(arguments, arguments.url)


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_the_url_is_given_or_kafkas_default() -> None:
    assert access("--url", "connect:1").url == "http://connect:1"
    assert access().url == "http://localhost:8083"
    assert access("--url", "https://[::1]:8083/connect").url == "https://[::1]:8083/connect"


def test_a_user_has_a_password_in_a_file_and_certificates(tmp_path: Path) -> None:
    password = written(tmp_path, "password", "of a file\n")
    ca = written(tmp_path, "ca.pem", "")
    words = ("--url", "https://connect-1:8083/api", "--user", "ops", "--password-file", password, "--ca", ca)
    assert access(*words) == Access("https://connect-1:8083/api", "ops", "of a file", ca)
    assert access("--cert", ca, "--key", ca) == Access("http://localhost:8083", cert=ca, key=ca)


def test_a_token_replaces_the_user(tmp_path: Path) -> None:
    found = access("--token-file", written(tmp_path, "token", "t0ken\n"))
    assert (found.user, found.password, found.token) == (None, None, "t0ken")
    assert "t0ken" not in repr(found)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--user", "ops"], "belong together"),
        (["--password-file", "FILE"], "belong together"),
        (["--user", "ops", "--password-file", "FILE", "--token-file", "FILE"], "replaces --user"),
        (["--token-file", "FILE"], "holds no token"),
        (["--key", "FILE"], "needs --cert"),
        (["--ca", "/nowhere"], "is no file"),
        (["--password-file", "/nowhere", "--user", "ops"], "No such file"),
    ],
)
def test_unusable_logins_are_refused_without_secrets(words: list[str], said: str, tmp_path: Path) -> None:
    file = str(written(tmp_path, "secret", "not a t0ken"))
    with pytest.raises(ConfigError, match=said) as caught:
        access(*(file if word == "FILE" else word for word in words))
    assert "t0ken" not in str(caught.value)


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
