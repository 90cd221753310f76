"""Plans and syncs client quotas and SCRAM users of the target, where settings ask for that."""

import os
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.providers import user_names, user_passwords
from sparkmirror.domain.accounts import QuotaChange, Quotas, ScramCredential, salted
from sparkmirror.domain.errors import ConfigError, SparkmirrorError, UnsupportedVersionError
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.periodic.flow_log import FlowLog, LogOnce
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.flow_admins import FlowAdmins

Credentials = Mapping[str, Sequence[ScramCredential]]
"""Credentials by user."""


@dataclass(frozen=True, slots=True)
class AccountPlan:
    """The changes to the target. `warnings` are for operators."""

    quotas: tuple[QuotaChange, ...] = ()
    users: tuple[ScramCredential, ...] = ()
    """Credentials to create, or to replace because iterations differ. Plans don't hold the password."""
    warnings: tuple[str, ...] = ()


def plan_quotas(source: Quotas, target: Quotas) -> tuple[QuotaChange, ...]:
    """The values that the source sets; what only the target sets stays, also after the source removed it."""
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
    """The credentials to make, and warnings about the users of `sync.users`.

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


_SALT_BYTES: Final = 20


class AccountSync:
    """Plans and applies quotas and users. Passwords are read when they are needed, and not kept."""

    def __init__(self, settings: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog) -> None:
        self._settings = settings
        self._admins = admins
        self._log = log
        self._warnings = LogOnce(log)
        self.troubles: Sequence[Trouble] = ()
        """The quotas and users that the target has not taken at the last time."""

    def run(self) -> None:
        """Raises KafkaError."""
        self.apply(self.plan())

    def plan(self) -> AccountPlan:
        """Reads only. Raises KafkaError."""
        quotas, about_quotas = self._plan_quotas()
        users, about_users = self._plan_users()
        return AccountPlan(quotas, users, (*about_quotas, *about_users))

    def apply(self, plan: AccountPlan) -> None:
        """Raises KafkaError when a request as a whole failed."""
        self._warnings.log(plan.warnings)
        found = []
        for entity, error in self._admins.writes.alter_quotas(plan.quotas).items():
            if error is None:
                self._log.info("quotas of %s follow the source again", entity)
            else:
                found.append(_not_synced(f"quotas of {entity}", error))
        self.troubles = [*found, *self._make_users(plan.users)]

    def _plan_quotas(self) -> tuple[tuple[QuotaChange, ...], tuple[str, ...]]:
        if not self._settings.sync_quotas:
            return (), ()
        try:
            return plan_quotas(self._admins.source.quotas(), self._admins.target.quotas()), ()
        except UnsupportedVersionError as error:
            return (), (f"quotas are not synced: {error}",)

    def _plan_users(self) -> tuple[tuple[ScramCredential, ...], tuple[str, ...]]:
        if self._settings.sync_users is None:
            return (), ()
        try:
            named = user_names(self._settings.sync_users)
            at_source = self._admins.source.credentials(named)
            return plan_users(named, at_source, self._admins.target.credentials(named))
        except (ConfigError, UnsupportedVersionError) as error:
            return (), (f"users are not synced: {error}",)

    def _make_users(self, wanted: Sequence[ScramCredential]) -> Sequence[Trouble]:
        """Make the credentials; return what could not be made."""
        if not wanted or self._settings.sync_users is None:
            return ()
        try:
            passwords = user_passwords(self._settings.sync_users, os.environ)
        except ConfigError as error:
            return (_not_synced("users", error),)
        credentials = [
            salted(credential, passwords[credential.user], secrets.token_bytes(_SALT_BYTES))
            for credential in wanted
            if credential.user in passwords
        ]
        results = self._admins.writes.alter_users(credentials)
        for one in credentials:
            if results.get(one.credential.user) is None:
                self._log.info("created %s", one.credential)
        return [_not_synced(f"user {user}", error) for user, error in results.items() if error is not None]


def _not_synced(what: str, error: SparkmirrorError) -> Trouble:
    off = "or switch it off: sync.quotas and sync.users"
    return Trouble(Cause.of_error(TroubleWord.NOT_SYNCED, Subject.ACCOUNT, what, error, off), what)
