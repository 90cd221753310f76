"""Sync of ACLs, quotas and users between two real clusters with authorizers."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.accounts import (
    CLIENT_ID,
    IP,
    USER,
    QuotaChange,
    QuotaEntity,
    ScramCredential,
    ScramMechanism,
    salted,
)
from sparkmirror.domain.acls import (
    AclBinding,
    AclOperation,
    AclPermission,
    Claim,
    PatternType,
    ResourceType,
)
from sparkmirror.domain.errors import AuthorizationError, DisconnectedError, KafkaError
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.policies.admin_writes import AclResults, AdminWrites, ForwardingAdmin
from sparkmirror.settings.configured import ConfiguredSource, configured_flow
from sparkmirror.settings.internal_topics import topics_on_target
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.accounts import AccountPlan, AccountSync
from sparkmirror.setup.acl_plan import AclPlan
from sparkmirror.setup.acl_sync import AclSync
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.storage.synced_acls import read_claims
from sparkmirror.storage.topic_creation import (
    ensure_topics,
)
from tests.support.broker_data import create_topic
from tests.support.connections import connection
from tests.support.waiting import await_value

WAIT_S: Final = 20.0
ANYBODY: Final = "User:ANONYMOUS"
READ: Final = AclBinding(
    ResourceType.TOPIC,
    PatternType.LITERAL,
    "acls.orders",
    "User:acls-alice",
    "*",
    AclOperation.READ,
    AclPermission.ALLOW,
)
ALL: Final = replace(READ, operation=AclOperation.ALL)
WRITE: Final = replace(READ, operation=AclOperation.WRITE)
PREFIXED: Final = replace(READ, pattern_type=PatternType.PREFIXED, resource_name="acls.")
EVERYTHING: Final = replace(READ, resource_name="*", operation=AclOperation.DESCRIBE)
GROUP: Final = replace(READ, resource_type=ResourceType.GROUP, resource_name="acls-readers")
SEEN: Final = replace(READ, principal=ANYBODY, operation=AclOperation.DESCRIBE)
"""With an ACL on a resource, every other principal is denied, so the mirror needs one too."""
WRITER: Final = replace(
    READ,
    resource_type=ResourceType.TRANSACTIONAL_ID,
    resource_name="acls-writers",
    operation=AclOperation.WRITE,
)


class SyncedFlow:
    """A flow between the two clusters, with the settings of its source connector."""

    def __init__(self, source: LocalCluster, target: LocalCluster, more: Mapping[str, str]) -> None:
        properties = {
            "clusters": "us, eu",
            "us.bootstrap.servers": source.bootstrap_servers,
            "eu.bootstrap.servers": target.bootstrap_servers,
            "us->eu.enabled": "true",
            "us->eu.topics": "acls.*",
            "offset.storage.replication.factor": "1",
            "emit.heartbeats.enabled": "false",
            **more,
        }
        (config,) = MirrorMakerConfig(Properties(properties), {}).flows()
        self._flow = configured_flow(config)
        self.admins = self.opened()
        claims = StateTopic.ACLS.of(self.settings.flow.source)
        own = topics_on_target(self._flow, self.connector)
        ensure_topics(self.admins.target, [topic for topic in own if topic.name == claims])

    def opened(self, kind: type[FlowAdmins] = FlowAdmins) -> FlowAdmins:
        return kind(self._flow.flow, self.connector)

    @property
    def connector(self) -> ConfiguredSource:
        assert self._flow.source is not None
        return self._flow.source

    @property
    def settings(self) -> MirrorSourceSettings:
        return self.connector.settings

    def acls(self, admins: FlowAdmins | None = None) -> AclSync:
        log = flow_log("contract.acls", self._flow.flow, self.connector.name)
        return AclSync(self.settings, admins or self.admins, log)

    def accounts(self) -> AccountSync:
        log = flow_log("contract.accounts", self._flow.flow, self.connector.name)
        return AccountSync(self.settings, self.admins, log)

    def claims(self) -> Mapping[AclBinding, Claim]:
        topic = StateTopic.ACLS.of(self.settings.flow.source)
        return read_claims(self.connector.target_admin, topic, self.connector.name)

    def await_source(self, expected: set[AclBinding]) -> None:
        """Wait for the ACLs: a broker answers from the part of the metadata log that it has applied."""
        await_acls(self.admins.source, expected)

    def await_target(self, expected: set[AclBinding]) -> None:
        await_acls(self.admins.target, expected)

    def close(self) -> None:
        self.admins.close()


def of_test(admin: Admin) -> set[AclBinding]:
    return {
        binding
        for binding in admin.acls()
        if binding.principal.startswith("User:acls-") or "acls." in binding.resource_name
    }


def await_acls(admin: Admin, expected: set[AclBinding]) -> None:
    await_value(lambda: of_test(admin) == expected, WAIT_S, lambda: f"{of_test(admin)}, not {expected}")


@pytest.fixture(scope="module")
def source(guarded_cluster: LocalCluster) -> LocalCluster:
    create_topic(guarded_cluster.bootstrap_servers, READ.resource_name)
    return guarded_cluster


@pytest.fixture
def clusters(
    source: LocalCluster, frail_cluster: LocalCluster
) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    """Source and target. ACLs that a test created are deleted."""
    yield source, frail_cluster
    for cluster in (source, frail_cluster):
        with closing(Admin(connection(cluster, alias="here"))) as admin:
            assert set(admin.delete_acls(list(of_test(admin))).values()) <= {None}
            await_acls(admin, set())


@contextmanager
def paired(clusters: tuple[LocalCluster, LocalCluster], **more: str) -> Iterator[SyncedFlow]:
    with closing(
        SyncedFlow(*clusters, {key.replace("_", "."): value for key, value in more.items()})
    ) as pair:
        yield pair


def test_default_acls_are_those_of_mm2_and_are_sent_once(
    clusters: tuple[LocalCluster, LocalCluster],
) -> None:
    denied = replace(WRITE, permission=AclPermission.DENY)
    with paired(clusters) as pair:
        granted = {ALL, WRITE, denied, PREFIXED, EVERYTHING, GROUP, WRITER}
        pair.admins.source.create_acls(list(granted))
        pair.await_source(granted)
        sync = pair.acls()
        sync.run()
        pair.await_target({replace(one, resource_name="us.acls.orders") for one in (READ, denied)})
        assert sync.plan() == AclPlan()
        pair.admins.source.delete_acls(list(granted))
        pair.await_source(set())
        assert sync.plan() == AclPlan(), "ACLs are deleted only if configured"


def test_created_acls_of_all_patterns_are_deleted_with_their_source(
    clusters: tuple[LocalCluster, LocalCluster],
) -> None:
    foreign = replace(READ, resource_name="us.acls.orders", principal="User:acls-bob")
    same_as_foreign = replace(foreign, resource_name="acls.orders")
    with paired(clusters, sync_acls="all", sync_acls_delete="true") as pair:
        granted = {SEEN, ALL, WRITE, PREFIXED, EVERYTHING, GROUP, WRITER, same_as_foreign}
        pair.admins.target.create_acls([foreign])
        pair.await_target({foreign})
        pair.admins.source.create_acls(list(granted))
        pair.await_source(granted)
        sync = pair.acls()
        sync.run()
        made = {
            replace(SEEN, resource_name="us.acls.orders"),
            replace(READ, resource_name="us.acls.orders"),
            replace(PREFIXED, resource_name="us.acls."),
            replace(EVERYTHING, pattern_type=PatternType.PREFIXED, resource_name="us."),
            GROUP,
            WRITER,
        }
        pair.await_target({foreign, *made})
        assert pair.claims() == dict.fromkeys(made, Claim.MADE)
        assert sync.plan() == AclPlan()
        pair.admins.source.delete_acls([ALL, GROUP, same_as_foreign])
        pair.await_source(granted - {ALL, GROUP, same_as_foreign})
        pair.acls().run()
        left = made - {replace(READ, resource_name="us.acls.orders"), GROUP}
        pair.await_target({foreign, *left})
        assert pair.claims() == dict.fromkeys(left, Claim.MADE)


class AdminThatFailsAfterCreate(ForwardingAdmin):
    """Creates the ACLs, then fails as a process does that is killed right after the request."""

    def create_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        super().create_acls(bindings)
        raise DisconnectedError("killed")


class FailingAdmins(FlowAdmins):
    @property
    def writes(self) -> AdminWrites:
        return AdminThatFailsAfterCreate({}, self.target, "eu")


def test_acl_of_a_crashed_sync_is_deleted_with_its_source(
    clusters: tuple[LocalCluster, LocalCluster],
) -> None:
    copy = replace(READ, resource_name="us.acls.orders")
    with paired(clusters, sync_acls_delete="true") as pair:
        pair.admins.source.create_acls([READ])
        pair.await_source({READ})
        with closing(pair.opened(FailingAdmins)) as failing, pytest.raises(DisconnectedError):
            pair.acls(failing).run()
        pair.await_target({copy})
        assert pair.claims() == {copy: Claim.INTENDED}
        pair.acls().run()
        assert pair.claims() == {copy: Claim.MADE}
        pair.admins.source.delete_acls([READ])
        pair.await_source(set())
        pair.acls().run()
        pair.await_target(set())
        assert pair.claims() == {}


def test_missing_authorizer_is_logged_once(
    clusters: tuple[LocalCluster, LocalCluster],
    source_cluster: LocalCluster,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "contract.acls")
    for sides in ((source_cluster, clusters[1]), (clusters[0], source_cluster)):
        caplog.clear()
        with paired(sides) as pair:
            sync = pair.acls()
            sync.run()
            sync.run()
        (said,) = caplog.messages
        assert said.startswith("no ACLs to sync: describe ACLs on ")
        assert "SECURITY_DISABLED" in said


def test_missing_acl_to_describe_acls_is_reported_with_its_command(
    clusters: tuple[LocalCluster, LocalCluster],
) -> None:
    cluster = replace(
        READ, resource_type=ResourceType.CLUSTER, resource_name="kafka-cluster", principal=ANYBODY
    )
    rights = [
        replace(cluster, operation=AclOperation.ALL),
        replace(cluster, operation=AclOperation.DESCRIBE, permission=AclPermission.DENY),
    ]
    said: list[str] = []

    def is_refused(call: Callable[[], object]) -> bool:
        try:
            call()
        except AuthorizationError as error:
            said.append(str(error))
        return bool(said)

    with paired(clusters) as pair:
        admin = pair.admins.source
        try:
            assert set(admin.create_acls(rights).values()) == {None}
            await_value(lambda: is_refused(pair.acls().run), WAIT_S, lambda: "it's allowed")
        finally:
            assert set(admin.delete_acls(rights).values()) == {None}
        await_value(lambda: not set(rights) & set(allowed(admin)), WAIT_S, lambda: "still there")
    assert said[0].startswith("describe ACLs on us: CLUSTER_AUTHORIZATION_FAILED")
    assert said[0].endswith(
        f"; needs DESCRIBE on the cluster: kafka-acls.sh --bootstrap-server {clusters[0].bootstrap_servers} "
        f"--add --allow-principal {ANYBODY} --operation Describe --cluster"
    )


def allowed(admin: Admin) -> Sequence[AclBinding]:
    try:
        return admin.acls()
    except AuthorizationError:
        return []


def test_each_refused_acl_has_the_brokers_error_message(
    clusters: tuple[LocalCluster, LocalCluster],
) -> None:
    nobody = replace(READ, principal="acls-alice")
    unnamed = replace(READ, resource_name="")
    with closing(Admin(connection(clusters[0], alias="here"))) as admin:
        results = admin.create_acls([nobody, READ, unnamed])
        assert results[READ] is None
        assert list(results) == [nobody, READ, unnamed]
        for refused, why in ((nobody, "principal"), (unnamed, "name")):
            error = results[refused]
            assert isinstance(error, KafkaError)
            assert str(error).startswith(f"create ACL {refused} on here: INVALID_REQUEST (")
            assert why in str(error)
        await_acls(admin, {READ})
        assert admin.delete_acls([READ, GROUP]) == {READ: None, GROUP: None}
        await_acls(admin, set())


def quota(*names: tuple[str, str | None], **values: float) -> QuotaChange:
    return QuotaChange(QuotaEntity(tuple(sorted(names))), tuple(sorted(values.items())))


def test_quotas_follow_the_source(clusters: tuple[LocalCluster, LocalCluster]) -> None:
    wanted = [
        quota((USER, "acls-alice"), producer_byte_rate=1e6, consumer_byte_rate=2e6),
        quota((USER, None), (CLIENT_ID, "acls-app"), request_percentage=12.5),
        quota((CLIENT_ID, None), producer_byte_rate=5e9),
        quota((IP, "10.1.2.3"), connection_creation_rate=100.0),
    ]
    other = quota((USER, "acls-alice"), producer_byte_rate=7.0, request_percentage=50.0)
    with paired(clusters, sync_quotas="true") as pair:
        assert set(pair.admins.source.alter_quotas(wanted).values()) == {None}
        assert set(pair.admins.target.alter_quotas([other]).values()) == {None}
        source, target = pair.admins.source, pair.admins.target
        entities = {change.entity for change in wanted}
        await_value(lambda: entities <= set(source.quotas()), WAIT_S, lambda: str(source.quotas()))
        await_value(lambda: other.entity in target.quotas(), WAIT_S, lambda: str(target.quotas()))
        sync = pair.accounts()
        planned = sync.plan()
        assert set(planned.quotas) >= set(wanted)
        sync.apply(planned)
        await_value(lambda: sync.plan() == AccountPlan(), WAIT_S, lambda: str(sync.plan()))
        assert target.quotas() == {
            **source.quotas(),
            other.entity: {
                "producer_byte_rate": 1e6,
                "consumer_byte_rate": 2e6,
                "request_percentage": 50.0,
            },
        }


def test_users_are_created_with_the_sources_mechanisms_and_no_secret_is_logged(
    clusters: tuple[LocalCluster, LocalCluster], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "contract.accounts")
    file = tmp_path / "users.properties"
    file.write_text("acls-alice = hush-hush\nacls-nobody = hush-too\n")
    at_source = [
        ScramCredential("acls-alice", ScramMechanism.SCRAM_SHA_256, 4096),
        ScramCredential("acls-alice", ScramMechanism.SCRAM_SHA_512, 8192),
    ]
    with paired(clusters, sync_users=str(file)) as pair:
        source, target = pair.admins.source, pair.admins.target
        others = [salted(credential, "another", b"0123456789abcdef") for credential in at_source]
        assert source.alter_users(others) == {"acls-alice": None}
        await_value(
            lambda: list(source.credentials(["acls-alice"])["acls-alice"]) == at_source,
            WAIT_S,
            lambda: str(source.credentials(["acls-alice"])),
        )
        sync = pair.accounts()
        planned = sync.plan()
        assert planned.users == tuple(at_source)
        sync.apply(planned)
        await_value(lambda: sync.plan().users == (), WAIT_S, lambda: str(sync.plan()))
        sync.run()
        found = target.credentials(["acls-alice", "acls-nobody"])
    assert found == {"acls-alice": at_source, "acls-nobody": []}
    ours = [record.message for record in caplog.records if record.name == "contract.accounts"]
    assert sorted(ours) == [
        "created user acls-alice (SCRAM-SHA-256, 4096 iterations)",
        "created user acls-alice (SCRAM-SHA-512, 8192 iterations)",
        "user acls-nobody of sync.users has no SCRAM credential at the source: it's left out",
    ]
    assert "hush" not in caplog.text
    assert "hush" not in repr(planned)


def test_refused_account_does_not_hinder_others(
    clusters: tuple[LocalCluster, LocalCluster],
) -> None:
    with closing(Admin(connection(clusters[0], alias="here"))) as admin:
        fine, odd = quota((USER, "acls-carol"), producer_byte_rate=1e6), quota((USER, "acls-dave"), speed=1.0)
        results = admin.alter_quotas([fine, odd])
        assert results[fine.entity] is None
        assert str(results[odd.entity]).startswith(
            "alter quotas of user acls-dave on here: INVALID_REQUEST ("
        )
        weak = ScramCredential("acls-dave", ScramMechanism.SCRAM_SHA_256, 1)
        strong = ScramCredential("acls-carol", ScramMechanism.SCRAM_SHA_256, 4096)
        made = admin.alter_users([salted(one, "x", b"0123456789abcdef") for one in (weak, strong)])
        assert made["acls-carol"] is None
        assert str(made["acls-dave"]).startswith(
            "alter SCRAM user acls-dave on here: UNACCEPTABLE_CREDENTIAL ("
        )
