"""Loading plug-ins, their errors, and checks of their results, with `tests/support/example_plugins.py`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from sparkmirror.config.admin_plugins import DIRECTLY, AdminPlugins, admin_plugins
from sparkmirror.config.known_keys import unread_connector_keys
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.plugin_points import (
    CONFIG_PROPERTY_FILTER,
    GROUP_FILTER,
    REPLICATION_POLICY,
    TOPIC_FILTER,
)
from sparkmirror.config.properties import Properties
from sparkmirror.connect.validation.classes import class_problem
from sparkmirror.domain.accounts import (
    QuotaChange,
    QuotaEntity,
    SaltedCredential,
    ScramCredential,
    ScramMechanism,
)
from sparkmirror.domain.errors import ConfigError, KafkaError, PluginError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.policies.admin_writes import AdminWrites, ForwardingAdmin, QuotaResults, Results
from sparkmirror.policies.replication import ReplicationPolicy

HERE = "tests.support.example_plugins:"
KEY = "replication.policy.class"
CONNECTOR = {
    "source.cluster.alias": "us",
    "source.cluster.bootstrap.servers": "u:9092",
    "target.cluster.bootstrap.servers": "e:9092",
    "admin.control.plane.url": "http://both",
    "target.admin.control.plane.url": "http://eu",
}


def policy(name: str, **more: str) -> ReplicationPolicy:
    return REPLICATION_POLICY.make({**CONNECTOR, KEY: name, **more})


def refusal(name: str) -> str:
    with pytest.raises(ConfigError) as caught:
        policy(name)
    assert (caught.value.key, caught.value.value) == (KEY, name)
    return caught.value.reason


def announce(folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, *lines: str) -> None:
    """Install a package that has nothing but entry points."""
    info = folder / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join((f"[{group}]", *lines)))
    monkeypatch.syspath_prepend(folder)


# loading


def test_a_class_by_module_and_name() -> None:
    made = policy(HERE + "Suffixed", **{"replication.policy.infix": "-via-"})
    assert made.format_remote_topic("us", "orders") == "orders-via-us"
    assert made.topic_source("orders-via-us") == "us"
    assert made.upstream_topic("orders-via-us") == "orders"
    assert made.original_topic("orders-via-us-via-eu") == "orders"
    assert made.heartbeats_topic() == "heartbeats"
    assert repr(made) == HERE + "Suffixed"


def test_a_subclass_needs_no_constructor() -> None:
    made = policy(HERE + "AsItIs", **{"replication.policy.separator": "_"})
    assert made.format_remote_topic("us", "orders") == "us_orders"
    assert made.is_internal_topic("private.notes")


def test_a_class_inside_of_a_class() -> None:
    assert policy(f" {HERE}Suffixed.Nested ").format_remote_topic("us", "a") == "us.a"


@pytest.mark.parametrize("name", ["com.acme.kafka.SuffixPolicy", "suffix", "com.acme.Outer$Inner"])
def test_an_announced_class(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announce(tmp_path, monkeypatch, "sparkmirror.replication_policies", f"{name} = {HERE}Suffixed")
    assert policy(name).format_remote_topic("us", "orders") == "orders-of-us"
    assert class_problem(KEY, name) is None
    assert class_problem("topic.filter.class", name) is not None


def test_kafkas_own_classes_can_not_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    announce(tmp_path, monkeypatch, "sparkmirror.replication_policies", f"{name} = {HERE}Suffixed")
    assert policy(name).format_remote_topic("us", "orders") == "orders"


def test_two_classes_under_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, kind in (("a", "Suffixed"), ("b", "AsItIs")):
        (tmp_path / folder).mkdir()
        group = "sparkmirror.replication_policies"
        announce(tmp_path / folder, monkeypatch, group, f"suffix = {HERE}{kind}")
        (tmp_path / folder / "acme-1.0.dist-info").rename(tmp_path / folder / f"{folder}-1.0.dist-info")
        info = tmp_path / folder / f"{folder}-1.0.dist-info" / "METADATA"
        info.write_text(f"Metadata-Version: 2.1\nName: {folder}\nVersion: 1.0\n")
    assert refusal("suffix") == f"is announced as {HERE}AsItIs and {HERE}Suffixed; write one of them"


def test_kafkas_own_policies_by_their_java_names() -> None:
    mirror = "org.apache.kafka.connect.mirror."
    assert policy(mirror + "DefaultReplicationPolicy").format_remote_topic("us", "a") == "us.a"
    assert policy(mirror + "IdentityReplicationPolicy").topic_source("a") == "us"
    custom = policy("com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy")
    assert (custom.topic_source("a"), custom.upstream_topic("a")) == ("us", None)
    assert REPLICATION_POLICY.make({}).format_remote_topic("us", "a") == "us.a"


def test_an_identity_policy_without_an_alias_knows_no_source() -> None:
    name = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    assert REPLICATION_POLICY.make({KEY: name}).topic_source("a") is None


def test_the_aws_policy_needs_an_alias() -> None:
    name = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
    with pytest.raises(ConfigError, match=r"source\.cluster\.alias: is missing"):
        REPLICATION_POLICY.make({KEY: name})


def test_strimzis_identity_policy_is_kafkas() -> None:
    name = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
    assert policy(name).format_remote_topic("us", "orders") == "orders"
    note = REPLICATION_POLICY.note({KEY: name})
    assert note is not None
    assert "Kafka's IdentityReplicationPolicy is used" in note
    assert REPLICATION_POLICY.note({}) is None


# errors


def test_a_java_class_without_a_counterpart() -> None:
    said = refusal("org.apache.kafka.connect.mirror.LegacyReplicationPolicy")
    assert "there is no Java here" in said
    assert "org.apache.kafka.connect.mirror.IdentityReplicationPolicy" in said
    assert "the entry points of the group sparkmirror.replication_policies (none is installed)" in said
    assert "Write package.module:Class, or install a package that announces its class" in said


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_module:Policy", "there is no module no_such_module; install it beside sparkmirror"),
        ("tests.no_such_module:Policy", "there is no module tests.no_such_module;"),
        (HERE + "Missing", "there is no Missing in the module tests.support.example_plugins"),
        (HERE + "Suffixed.Missing", "there is no Suffixed.Missing in the module"),
        (HERE + "NOT_A_CLASS", f"{HERE}NOT_A_CLASS is of type str; it must be a class"),
        ("os:system", "os:system is of type builtin_function_or_method; it must be a class"),
        ("subprocess:Popen", "subprocess:Popen is no ReplicationPolicy: it has no format_remote_topic,"),
        (HERE + "Initials", "is no ReplicationPolicy: it has no format_remote_topic, topic_source,"),
        (HERE + "OnlyDeclared", "is no ReplicationPolicy: it has no format_remote_topic, topic_source,"),
        (HERE + "Unmakeable", "making it raised TypeError: "),
        (HERE + "Raising", f"{HERE}Raising.topic_source('topic') raised LookupError: no such topic"),
        (HERE + "Exiting", f"{HERE}Exiting.topic_source('topic') raised SystemExit: 3"),
        (HERE + "Numbering", f"{HERE}Numbering.checkpoints_topic('source') returned 7, not a str"),
        (HERE + "ForOneArgument", "format_remote_topic can't be called with (source_alias, topic): too many"),
        (
            "tests.unit.config.broken_plugin:Policy",
            "importing tests.unit.config.broken_plugin raised Runtime",
        ),
        ("a.b:", "is not of the form package.module:Class"),
        (":Policy", "is not of the form package.module:Class"),
        ("../evil:Policy", "is not of the form package.module:Class"),
        ("a:b:c", "is not of the form package.module:Class"),
    ],
)
def test_an_unusable_plugin_is_refused_with_the_reason(name: str, reason: str) -> None:
    assert reason in refusal(name)


def test_a_module_whose_own_import_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_half.py").write_text("import not_installed_here\n")
    monkeypatch.syspath_prepend(tmp_path)
    said = refusal("acme_half:Policy")
    assert said == "importing acme_half raised ModuleNotFoundError: No module named 'not_installed_here'"
    sys.modules.pop("acme_half", None)


def test_a_plugin_may_refuse_its_settings() -> None:
    with pytest.raises(ConfigError, match=r"^acme\.key: is missing$"):
        policy(HERE + "Asking")
    assert policy(HERE + "Asking", **{"acme.key": "x"}).format_remote_topic("us", "a") == "us.a"


# filters


def test_a_topic_filter_of_ones_own() -> None:
    made = TOPIC_FILTER.make({"topic.filter.class": HERE + "ShortNames", "topics": "o.*"})
    assert [name for name in ("orders", "payments", "orders-old") if made.should_replicate(name)] == [
        "orders"
    ]
    assert made.refused_by("orders-old") == f"topic.filter.class ({HERE}ShortNames)"
    assert made.refused_by("orders") is None


def test_filters_of_groups_and_configs() -> None:
    named = {"group.filter.class": HERE + "Initials", "acme.initial": "b"}
    groups = GROUP_FILTER.make(named)
    assert (groups.should_replicate("billing"), groups.should_replicate("audit")) == (True, False)
    assert groups.refused_by("audit") == f"group.filter.class ({HERE}Initials)"
    configs = CONFIG_PROPERTY_FILTER.make({"config.property.filter.class": HERE + "Initials"})
    assert configs.should_replicate_config_property("any")
    assert not configs.should_replicate_source_default("any")


def test_a_filter_that_returns_no_boolean_is_an_error() -> None:
    made = TOPIC_FILTER.make({"topic.filter.class": HERE + "Matching", "topics": "o.*"})
    with pytest.raises(PluginError, match=r"Matching.should_replicate\('orders'\) returned <re.Match"):
        made.should_replicate("orders")
    with pytest.raises(PluginError, match=r"returned None, not a bool"):
        made.should_replicate("payments")


def test_a_pattern_of_kafkas_own_filters_is_refused_where_it_was_written() -> None:
    written = Properties({"A->B.topics": "("}).under("A->B.")
    with pytest.raises(ConfigError, match=r"Invalid value \( for configuration A->B\.topics: not a usable"):
        TOPIC_FILTER.make(written)


# admin plug-ins


class Cluster(ForwardingAdmin):
    """Accepts every request and records it."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def create_topics(self, topics: Sequence[TopicCreation]) -> Results:
        self.asked.append(topics)
        return dict.fromkeys((topic.name for topic in topics), None)

    def grow_topics(self, counts: Mapping[str, int]) -> Results:
        self.asked.append(counts)
        return dict.fromkeys(counts, None)


ORDERS = TopicCreation("orders", 1, 1, {})
FLOW = Flow(Alias("us"), Alias("eu"))


def admin(name: str, cluster: AdminWrites, alias: str = "eu") -> AdminWrites:
    properties = Properties({**CONNECTOR, "forwarding.admin.class": HERE + name})
    return admin_plugins(properties, FLOW).over(cluster, alias)


def test_without_an_admin_plugin_writes_go_to_the_cluster() -> None:
    assert admin_plugins(Properties(CONNECTOR), FLOW) is DIRECTLY
    cluster = Cluster()
    assert DIRECTLY.over(cluster, "eu") is cluster


def test_an_admin_plugin_gets_what_javas_gets() -> None:
    cluster = Cluster()
    plugins = admin_plugins(Properties({**CONNECTOR, "forwarding.admin.class": HERE + "Choosy"}), FLOW)
    assert plugins.properties["us"]["control.plane.url"] == "http://both"
    assert plugins.properties["eu"]["control.plane.url"] == "http://eu"
    assert plugins.properties["eu"]["bootstrap.servers"] == "e:9092"
    assert plugins.over(cluster, "eu").create_topics([ORDERS]) == {"orders": None}
    assert plugins.over(cluster, "us").grow_topics({"orders": 3}) == {"orders": None}
    assert cluster.asked == [[ORDERS], {"orders": 3}]


def test_an_item_without_a_result_of_an_admin_plugin_is_an_error() -> None:
    result = admin("Deaf", Cluster()).create_topics([ORDERS])["orders"]
    assert isinstance(result, KafkaError)
    assert str(result) == f"{HERE}Deaf.create_topics returned no result for orders"


def test_an_admin_plugin_that_raises_is_named() -> None:
    with pytest.raises(
        PluginError, match=r"Deaf.grow_topics\(\{'orders': 3\}\) raised OSError: control plane"
    ):
        admin("Deaf", Cluster()).grow_topics({"orders": 3})


def test_an_admin_plugin_that_can_not_begin() -> None:
    properties = Properties({"forwarding.admin.class": HERE + "Choosy", **CONNECTOR})
    without = properties.where(lambda key: "control.plane" not in key)
    with pytest.raises(PluginError, match=r"Choosy for eu raised KeyError: .control.plane.url."):
        admin_plugins(without, FLOW).over(Cluster(), "eu")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("OfOneArgument", "too many positional arguments"),
        ("NoSubclass", "is no subclass of sparkmirror.plugins.ForwardingAdmin"),
    ],
)
def test_admin_plugins_that_are_refused_at_the_start(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        admin(name, Cluster())
    assert caught.value.key == "forwarding.admin.class"


class Recording:
    """Takes every call there is."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, object]] = []

    def __getattr__(self, method: str) -> Callable[..., Mapping[object, None]]:
        def call(items: Sequence[object]) -> Mapping[object, None]:
            self.asked.append((method, items))
            return dict.fromkeys(items)

        return call


def test_everything_there_is_to_write_is_forwarded() -> None:
    recording = Recording()
    forwarding = ForwardingAdmin({}, cast("AdminWrites", recording), "eu")
    methods = [name for name in vars(AdminWrites) if not name.startswith("_")]
    for name in methods:
        assert getattr(forwarding, name)(["it"]) == {"it": None}
    assert recording.asked == [(name, ["it"]) for name in methods]


def test_no_item_goes_missing() -> None:
    class Silent(ForwardingAdmin):
        def alter_quotas(self, changes: Sequence[QuotaChange]) -> QuotaResults:  # noqa: ARG002
            return {}

        def alter_users(self, credentials: Sequence[SaltedCredential]) -> Results:  # noqa: ARG002
            return {}

    silent = AdminPlugins("mine", Silent, {"eu": {}}).over(Cluster(), "eu")
    entity = QuotaEntity((("user", "alice"),))
    error = silent.alter_quotas([QuotaChange(entity, ())])[entity]
    assert str(error).startswith("mine.alter_quotas returned no result")
    credential = SaltedCredential(ScramCredential("bob", ScramMechanism.SCRAM_SHA_256, 4096), b"s", b"p")
    assert str(silent.alter_users([credential])["bob"]) == "mine.alter_users returned no result for bob"


def test_keys_that_a_plugin_may_read_are_not_called_unread() -> None:
    properties = {"clusters": "us,eu", "us.bootstrap.servers": "u:1", "eu.bootstrap.servers": "e:1"}
    keys = {
        **dict.fromkeys(("us->eu.topic.filter.team", "us->eu.acme.url", "eu.admin.desk.file"), "x"),
        **dict.fromkeys(("us->eu.topcis", "acme.url", "us->eu.topics.blacklist"), "x"),
    }
    without = [unknown.key for unknown in MirrorMakerConfig(Properties(properties | keys), {}).unknown_keys()]
    assert without == list(keys)
    named = properties | keys | {"us->eu.topic.filter.class": HERE + "Initials"}
    found = [unknown.key for unknown in MirrorMakerConfig(Properties(named), {}).unknown_keys()]
    assert found == ["us->eu.topcis", "acme.url", "us->eu.topics.blacklist"]
    kafkas = (
        properties
        | keys
        | {"us->eu.topic.filter.class": " org.apache.kafka.connect.mirror.DefaultTopicFilter "}
    )
    assert len(MirrorMakerConfig(Properties(kafkas), {}).unknown_keys()) == len(keys)


def test_nor_are_those_of_a_connector() -> None:
    keys = dict.fromkeys(("topic.filter.team", "acme.url", "target.admin.desk.file", "topcis"), "x")
    assert [unknown.key for unknown in unread_connector_keys(keys)] == list(keys)
    named = keys | {"forwarding.admin.class": HERE + "Choosy"}
    assert [unknown.key for unknown in unread_connector_keys(named)] == ["topcis"]
