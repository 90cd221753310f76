"""Plans of ACLs: created and deleted ones, idempotence, and ACLs of others."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.acls import (
    AclBinding,
    AclOperation,
    AclPermission,
    Claim,
    PatternType,
    ResourceType,
    SyncAcls,
)
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.policies.replication import DefaultReplicationPolicy, IdentityReplicationPolicy
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.acl_plan import AclPlan, SourceAcls, plan_acls
from tests.support.source_settings import SETTINGS as SOURCE_SETTINGS

READ = AclBinding(
    ResourceType.TOPIC,
    PatternType.LITERAL,
    "orders",
    "User:alice",
    "*",
    AclOperation.READ,
    AclPermission.ALLOW,
)
COPY = replace(READ, resource_name="us.orders")
SETTINGS = replace(
    SOURCE_SETTINGS,
    flow=Flow(Alias("us"), Alias("eu")),
    topic_filter=DefaultTopicFilter(("orders.*", "payments"), ()),
    offset_syncs_topic=None,
)
ALL = replace(SETTINGS, sync_acls=SyncAcls.ALL)
TOPICS = ("orders", "orders.new", "payments", "secrets")


def plan(
    settings: MirrorSourceSettings,
    source: tuple[AclBinding, ...] = (),
    target: tuple[AclBinding, ...] = (),
    claims: Mapping[AclBinding, Claim] | None = None,
) -> AclPlan:
    return plan_acls(settings, SourceAcls(source, TOPICS), target, claims)


def test_only_what_the_target_lacks_is_created() -> None:
    assert plan(SETTINGS, (READ,)) == AclPlan(creates=(COPY,))
    assert plan(SETTINGS, (READ,), (COPY,)) == AclPlan()


def test_without_memory_nothing_is_removed() -> None:
    assert plan(SETTINGS, (), (COPY,)) == AclPlan()


def test_what_is_created_is_claimed_first() -> None:
    assert plan(SETTINGS, (READ,), (), {}) == AclPlan((COPY,), claims={COPY: Claim.INTENDED})


def test_what_the_mirror_made_goes_with_its_source() -> None:
    assert plan(SETTINGS, (), (COPY,), {COPY: Claim.MADE}) == AclPlan(deletes=(COPY,))


def test_what_the_mirror_did_not_make_stays() -> None:
    assert plan(SETTINGS, (), (COPY,), {}) == AclPlan()


def test_what_is_only_selected_no_more_stays() -> None:
    """Readers of a topic on the target are not shut out because it's mirrored no longer."""
    narrower = replace(SETTINGS, topic_filter=DefaultTopicFilter(("payments",), ()))
    assert plan(narrower, (READ,), (COPY,), {COPY: Claim.MADE}) == AclPlan()
    group = replace(READ, resource_type=ResourceType.GROUP)
    assert plan(SETTINGS, (group,), (group,), {group: Claim.MADE}) == AclPlan()


def test_acls_removed_by_hand_are_dropped_or_created_again() -> None:
    assert plan(SETTINGS, (), (), {COPY: Claim.MADE}) == AclPlan(claims={COPY: None})
    again = plan(SETTINGS, (READ,), (), {COPY: Claim.MADE})
    assert again == AclPlan((COPY,), claims={COPY: Claim.INTENDED})


def test_a_crash_before_or_after_the_request_loses_nothing() -> None:
    intended = {COPY: Claim.INTENDED}
    assert plan(SETTINGS, (READ,), (), intended) == AclPlan((COPY,))
    assert plan(SETTINGS, (READ,), (COPY,), intended) == AclPlan(claims={COPY: Claim.MADE})


def test_what_may_be_foreign_is_named_and_kept() -> None:
    found = plan(SETTINGS, (), (COPY,), {COPY: Claim.INTENDED})
    assert (found.creates, found.deletes, found.claims) == ((), (), {COPY: None})
    (warning,) = found.warnings
    assert warning.startswith(
        "ACL ALLOW READ on TOPIC us.orders to User:alice stays on the target although the source "
        "no longer has it"
    )


def test_prefixes_are_those_of_mirrored_topics() -> None:
    known = replace(READ, pattern_type=PatternType.PREFIXED, resource_name="ord")
    secret = replace(READ, pattern_type=PatternType.PREFIXED, resource_name="sec")
    assert plan(SETTINGS, (known, secret)) == AclPlan()
    assert plan(ALL, (known, secret)) == AclPlan((replace(known, resource_name="us.ord"),))


def test_all_topics_of_the_source_are_those_that_begin_with_its_alias() -> None:
    everything = replace(READ, resource_name="*")
    assert plan(ALL, (everything,)).creates == (
        replace(everything, pattern_type=PatternType.PREFIXED, resource_name="us."),
    )
    identity = replace(ALL, policy=IdentityReplicationPolicy(source_alias="us"))
    assert plan(identity, (everything,)).creates == (everything,)


class Reversed(DefaultReplicationPolicy):
    """Puts the alias behind."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}.{source_alias}"


def test_a_prefix_that_a_policy_moves_is_inexpressible() -> None:
    prefixed = replace(READ, pattern_type=PatternType.PREFIXED, resource_name="ord")
    found = plan(replace(ALL, policy=Reversed()), (prefixed, READ))
    assert found.creates == (replace(READ, resource_name="orders.us"),)
    assert found.warnings[0].startswith("ACL ALLOW READ on TOPIC PREFIXED ord to User:alice can't be synced")


BINDINGS = st.builds(
    AclBinding,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["orders", "us.orders", "us.", "ord", "*", "secrets"]),
    st.sampled_from(["User:a", "User:b"]),
    st.just("*"),
    st.sampled_from([AclOperation.READ, AclOperation.WRITE, AclOperation.ALL]),
    st.sampled_from(AclPermission).filter(lambda permission: permission >= AclPermission.DENY),
)
SOME = st.frozensets(BINDINGS, max_size=6)
POLICIES = st.sampled_from(
    [DefaultReplicationPolicy(), IdentityReplicationPolicy(source_alias="us"), Reversed()]
)


class Target:
    """The target's ACLs, and what is remembered of them."""

    def __init__(self, bindings: frozenset[AclBinding]) -> None:
        self.bindings = set(bindings)
        self.claims: dict[AclBinding, Claim] = {}

    def apply(self, plan: AclPlan, *, dies_after: int = 9) -> None:
        """Step by step, as far as the process lives."""
        steps: list[Callable[[], None]] = [
            lambda: self.remember(plan.claims),
            lambda: self.bindings.update(plan.creates),
            lambda: self.remember(dict.fromkeys(plan.creates, Claim.MADE)),
            lambda: self.bindings.difference_update(plan.deletes),
            lambda: self.remember(dict.fromkeys(plan.deletes)),
        ]
        for step in steps[:dies_after]:
            step()

    def remember(self, claims: Mapping[AclBinding, Claim | None]) -> None:
        for binding, claim in claims.items():
            if claim is None:
                self.claims.pop(binding, None)
            else:
                self.claims[binding] = claim

    def plan(self, settings: MirrorSourceSettings, source: frozenset[AclBinding]) -> AclPlan:
        return plan(settings, tuple(source), tuple(self.bindings), self.claims)


@given(SOME, SOME, POLICIES, st.sampled_from(SyncAcls))
def test_a_plan_after_one_that_was_carried_out_is_empty(
    source: frozenset[AclBinding],
    there: frozenset[AclBinding],
    policy: DefaultReplicationPolicy,
    scope: SyncAcls,
) -> None:
    settings = replace(SETTINGS, policy=policy, sync_acls=scope)
    target = Target(there)
    target.apply(target.plan(settings, source))
    again = target.plan(settings, source)
    assert replace(again, warnings=()) == AclPlan()


@given(
    st.lists(st.tuples(SOME, st.integers(0, 5)), min_size=1, max_size=4),
    SOME,
    POLICIES,
    st.sampled_from(SyncAcls),
)
def test_nothing_that_others_made_is_ever_removed(
    rounds: list[tuple[frozenset[AclBinding], int]],
    foreign: frozenset[AclBinding],
    policy: DefaultReplicationPolicy,
    scope: SyncAcls,
) -> None:
    """However the source changes, and wherever the process dies."""
    settings = replace(SETTINGS, policy=policy, sync_acls=scope)
    target = Target(foreign)
    for source, dies_after in rounds:
        target.apply(target.plan(settings, source), dies_after=dies_after)
        assert foreign <= target.bindings


@given(SOME, SOME, POLICIES, st.sampled_from(SyncAcls))
def test_all_that_the_mirror_made_goes_with_the_source(
    source: frozenset[AclBinding],
    foreign: frozenset[AclBinding],
    policy: DefaultReplicationPolicy,
    scope: SyncAcls,
) -> None:
    settings = replace(SETTINGS, policy=policy, sync_acls=scope)
    target = Target(foreign)
    target.apply(target.plan(settings, source))
    target.apply(target.plan(settings, frozenset()))
    assert target.bindings == foreign
    assert target.claims == {}
