"""Makes the target's client quotas and SCRAM users follow the source, where that is asked for."""

import os
import secrets
from collections.abc import Sequence
from typing import Final

from sparkmirror.config.user_passwords import user_names, user_passwords
from sparkmirror.connectors.flow_log import FlowLog
from sparkmirror.connectors.log_once import LogOnce
from sparkmirror.connectors.source import MirrorSourceSettings
from sparkmirror.domain.errors import ConfigError, UnsupportedVersionError
from sparkmirror.policies.accounts import QuotaChange, ScramCredential, salted
from sparkmirror.setup.account_plan import AccountPlan, plan_quotas, plan_users
from sparkmirror.setup.flow_admins import FlowAdmins

_SALT_BYTES: Final = 20


class AccountSync:
    """One owner. Passwords are read when they are needed, and not kept."""

    def __init__(self, told: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog) -> None:
        self._told = told
        self._admins = admins
        self._log = log
        self._problems = LogOnce(log)

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
        problems = [*plan.warnings]
        for entity, error in self._admins.writes.alter_quotas(plan.quotas).items():
            if error is None:
                self._log.info("quotas of %s follow the source again", entity)
            else:
                problems.append(str(error))
        problems += self._make_users(plan.users)
        self._problems.say(problems)

    def _plan_quotas(self) -> tuple[tuple[QuotaChange, ...], tuple[str, ...]]:
        if not self._told.sync_quotas:
            return (), ()
        try:
            return plan_quotas(self._admins.source.quotas(), self._admins.target.quotas()), ()
        except UnsupportedVersionError as error:
            return (), (f"quotas are not synced: {error}",)

    def _plan_users(self) -> tuple[tuple[ScramCredential, ...], tuple[str, ...]]:
        if self._told.sync_users is None:
            return (), ()
        try:
            named = user_names(self._told.sync_users)
            at_source = self._admins.source.credentials(named)
            return plan_users(named, at_source, self._admins.target.credentials(named))
        except (ConfigError, UnsupportedVersionError) as error:
            return (), (f"users are not synced: {error}",)

    def _make_users(self, wanted: Sequence[ScramCredential]) -> Sequence[str]:
        """What went wrong."""
        if not wanted or self._told.sync_users is None:
            return ()
        try:
            passwords = user_passwords(self._told.sync_users, os.environ)
        except ConfigError as error:
            return (f"users are not synced: {error}",)
        credentials = [
            salted(credential, passwords[credential.user], secrets.token_bytes(_SALT_BYTES))
            for credential in wanted
            if credential.user in passwords
        ]
        results = self._admins.writes.alter_users(credentials)
        for one in credentials:
            if results.get(one.credential.user) is None:
                self._log.info("created %s", one.credential)
        return [str(error) for error in results.values() if error is not None]
