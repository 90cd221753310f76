"""Which client quotas and SCRAM users of the source the target lacks, or has otherwise. Knows no secrets."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.policies.accounts import QuotaChange, Quotas, ScramCredential

Credentials = Mapping[str, Sequence[ScramCredential]]
"""By user."""


@dataclass(frozen=True, slots=True)
class AccountPlan:
    """What to set on the target. `warnings` are for people."""

    quotas: tuple[QuotaChange, ...] = ()
    users: tuple[ScramCredential, ...] = ()
    """To create, or to replace where iterations differ: with a password that plans do not hold."""
    warnings: tuple[str, ...] = ()


def plan_quotas(source: Quotas, target: Quotas) -> tuple[QuotaChange, ...]:
    """Values that the source sets; what only the target sets stays, also if the source has given it up."""
    changes: list[QuotaChange] = []
    for entity in sorted(source, key=str):
        there = target.get(entity, {})
        differing = {key: value for key, value in source[entity].items() if there.get(key) != value}
        if differing:
            changes.append(QuotaChange(entity, tuple(sorted(differing.items()))))
    return tuple(changes)


def plan_users(
    named: Collection[str], source: Credentials, target: Credentials
) -> tuple[tuple[ScramCredential, ...], tuple[str, ...]]:
    """The credentials to make, and what people should know of the users that they named.

    A user's mechanisms and iterations are the source's; mechanisms that only the target has stay.
    """
    credentials: list[ScramCredential] = []
    warnings: list[str] = []
    for user in sorted(named):
        wanted = source.get(user, ())
        if not wanted:
            warnings.append(f"user {user} of sync.users has no SCRAM credential at the source: it's left out")
        there = target.get(user, ())
        credentials += [credential for credential in wanted if credential not in there]
    return tuple(credentials), tuple(warnings)
