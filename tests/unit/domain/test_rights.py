import shlex

import pytest

from sparkmirror.domain.acls import AclOperation, PatternType, ResourceType
from sparkmirror.domain.client_settings import ConnectionSettings, SecurityProtocol
from sparkmirror.domain.rights import Need, Right, grant_command, how_to_grant, principal_of

PLAIN = ConnectionSettings((("kafka-1", 9092), ("::1", 9093)))
ADD = "kafka-acls.sh --bootstrap-server h:1 --add --allow-principal User:m --operation"


@pytest.mark.parametrize(
    ("right", "words", "options"),
    [
        (Need.READ_TOPIC.of("orders"), "READ on topic orders", "Read --topic orders"),
        (Need.DESCRIBE_GROUP.of("g 1"), "DESCRIBE on group g 1", "Describe --group 'g 1'"),
        (Need.TRANSACT.of("tx"), "WRITE on transactional id tx", "Write --transactional-id tx"),
        (Need.ALTER_ACLS.of(), "ALTER on the cluster", "Alter --cluster"),
        (Need.NUMBER_RECORDS.of(), "IDEMPOTENT_WRITE on the cluster", "IdempotentWrite --cluster"),
        (
            Need.ALTER_TOPIC_CONFIGS.of("*"),
            "ALTER_CONFIGS on topic *",
            "AlterConfigs --topic '*'",
        ),
        (
            Need.WRITE_TOPIC.of("us.", PatternType.PREFIXED),
            "WRITE on topics that begin with us.",
            "Write --topic us. --resource-pattern-type prefixed",
        ),
        (
            Right(ResourceType.USER, "User:a", AclOperation.DESCRIBE_TOKENS),
            "DESCRIBE_TOKENS on user User:a",
            "DescribeTokens --user-principal User:a",
        ),
        (
            Right(ResourceType.DELEGATION_TOKEN, "t", AclOperation.DESCRIBE),
            "DESCRIBE on delegation token t",
            "Describe --delegation-token t",
        ),
    ],
)
def test_a_right_is_said_and_granted(right: Right, words: str, options: str) -> None:
    assert str(right) == words
    assert grant_command(right, "User:m", "h:1") == f"{ADD} {options}"


@pytest.mark.parametrize("name", ["it's", "a b", "$(rm -rf .)", "`x`", '"', "ü;", "*"])
def test_no_name_escapes_from_its_place_in_the_line(name: str) -> None:
    words = shlex.split(grant_command(Need.READ_TOPIC.of(name), f"User:CN={name}", "h:1"))
    assert words[5] == f"User:CN={name}"
    assert words[-2:] == ["--topic", name]


def test_every_need_can_be_granted() -> None:
    for need in Need:
        assert grant_command(need.of("x"), "User:m", "h:1").startswith(ADD)


def test_command_names_servers_and_principal() -> None:
    assert how_to_grant(Need.GROW_TOPIC.of("t"), PLAIN) == (
        "needs ALTER on topic t: kafka-acls.sh --bootstrap-server 'kafka-1:9092,[::1]:9093' --add "
        "--allow-principal User:ANONYMOUS --operation Alter --topic t"
    )


def test_principal_of_a_sasl_client_is_a_placeholder() -> None:
    known_to_brokers = ConnectionSettings((("h", 1),), security_protocol=SecurityProtocol.SASL_SSL)
    assert principal_of(known_to_brokers) == "User:NAME"
