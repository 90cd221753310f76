import argparse
from pathlib import Path

import pytest

from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.commands.group_offset_sync import client_properties
from sparkmirror.cli.main import main
from sparkmirror.config.properties import Properties

CUSTOM = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"


def parsed(*arguments: str) -> argparse.Namespace:
    return build_parser().parse_args(["group-offset-sync", *arguments])


def client_settings(file: dict[str, str], *arguments: str) -> dict[str, str]:
    return dict(client_properties(parsed(*arguments), Properties(file)))


def test_help_names_examples_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["group-offset-sync", "-h"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for flag in ("-cgi", "-src", "-pfp", "-mtls", "-ssl", "-rpc", "-rps", "-int", "-rf"):
        assert f"  {flag}" in text
    assert "exit codes:\n  0    " in text


def test_the_tools_defaults() -> None:
    arguments = parsed()
    assert (arguments.group, arguments.source) == ("mm2TestConsumer1", "msksource")
    assert (arguments.interval_s, arguments.run_for_s) == (20, 0)
    assert client_settings({}) == {"bootstrap.servers": "http://127.0.0.1:9092"}


LONG = {
    "-cgi": "--consumerGroupID",
    "-src": "--sourceCluster",
    "-pfp": "--propertiesFilePath",
    "-rpc": "--replicationPolicyClass",
    "-rps": "--replicationPolicySeparator",
    "-int": "--interval",
    "-rf": "--runFor",
}


def test_long_and_short_spellings_mean_the_same() -> None:
    short = [word for flag in LONG for word in (flag, "7")]
    long = [word for flag in LONG.values() for word in (flag, "7")]
    assert vars(parsed(*short, "-mtls", "-ssl")) == vars(parsed(*long, "--mTLSEnable", "--sslEnable"))


def test_the_documented_commands_are_accepted() -> None:
    where = [
        "-cgi",
        "mm2TestConsumer1",
        "-src",
        "msksource",
        "-pfp",
        "/tmp/kafka/consumer.properties_sync_dest",
    ]
    arguments = parsed(*where, "-mtls", "-rpc", CUSTOM)
    assert arguments.mtls
    assert arguments.policy_class == CUSTOM
    assert arguments.file == Path("/tmp/kafka/consumer.properties_sync_dest")


def test_the_tools_property_names_are_read() -> None:
    file = {"BOOTSTRAP_SERVERS_CONFIG": " b:9092 ", "GROUP_ID_CONFIG": "unused", "bootstrap.servers": "c:1"}
    assert client_settings(file, "-rps", "-") == {
        "bootstrap.servers": "b:9092",
        "replication.policy.separator": "-",
    }
    assert client_settings({**file, "BOOTSTRAP_SERVERS_CONFIG": " "}) == {"bootstrap.servers": "c:1"}


def test_tls_takes_its_stores_from_the_file() -> None:
    file = {"BOOTSTRAP_SERVERS_CONFIG": "b:1", "SSL_TRUSTSTORE_LOCATION_CONFIG": "/t.jks"}
    assert client_settings(file, "-ssl") == {
        "bootstrap.servers": "b:1",
        "security.protocol": "SSL",
        "ssl.truststore.location": "/t.jks",
    }
    mutual = client_settings({**file, "SSL_KEYSTORE_PASSWORD_CONFIG": "x"}, "-mtls")
    assert mutual["security.protocol"] == "SSL"
    assert mutual["ssl.truststore.location"] == "/t.jks"
    assert mutual["ssl.keystore.location"] == "/tmp/kafka.client.keystore.jks"
    assert (mutual["ssl.keystore.password"], mutual["ssl.key.password"]) == ("x", "password")


@pytest.mark.parametrize("flag", ["-ssl", "-mtls"])
def test_a_missing_store_is_told_in_one_line(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dest.properties"
    file.write_text(
        "BOOTSTRAP_SERVERS_CONFIG=127.0.0.1:1\nSSL_KEYSTORE_PASSWORD_CONFIG=hush\n"
        f"SSL_TRUSTSTORE_LOCATION_CONFIG={tmp_path}/none.jks\n"
    )
    assert main(["group-offset-sync", "-pfp", str(file), flag, "--once"]) == 1
    message = capsys.readouterr().err
    assert "for configuration ssl.truststore.location: There is no such file" in message
    assert "hush" not in message
    assert message.count("\n") == 1


def test_a_named_file_must_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["group-offset-sync", "-pfp", str(tmp_path / "none"), "--once"]) == 2
    assert capsys.readouterr().err.startswith("sparkmirror group-offset-sync: ")


@pytest.mark.parametrize(
    "arguments",
    [["-int", "0"], ["-rf", "-1"], ["--once", "-rf", "5"], ["--once", "--dry-run"], ["-nonsense"]],
)
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["group-offset-sync", *arguments])
    assert caught.value.code == 2
