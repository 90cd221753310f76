"""A node whose login is refused for a while is no member of its group, and takes part again afterwards."""

from pathlib import Path
from typing import Final

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.kafka.worker_group import GroupOptions, WorkerGroup
from tests.support.secured_broker import SecuredBroker, add_scram_users, login
from tests.support.waiting import await_value

WAIT_S: Final = 60.0
USER: Final = "node"
OPTIONS: Final = GroupOptions("logins", heartbeat_interval_s=0.4, session_timeout_s=6.0)


def test_a_node_takes_part_again_when_its_login_is_mended(secured: SecuredBroker, tmp_path: Path) -> None:
    """Sessions end every 3 s. It must not end: other groups of its process have other logins."""
    secrets = tmp_path / "secrets"
    add_scram_users(secured.cluster.bootstrap_servers, USER, password="right")

    def write(password: str) -> None:
        secrets.write_text(f"password = {password}\n")

    write("right")
    settings = secured.settings("SHORT", login("SCRAM-SHA-512", USER, f"${{file:{secrets}:password}}"))
    group = WorkerGroup(settings, OPTIONS, "http://node:8083/", lambda _: None)

    def state() -> str:
        return f"{group.membership}, {group.failure}, {group.trouble}"

    group.start()
    try:
        await_value(lambda: group.membership.is_leader, WAIT_S, state)
        write("wrong")
        trouble = await_value(lambda: group.trouble, WAIT_S, state)
        assert isinstance(trouble, AuthenticationError)
        assert f"refused the login of {USER}" in str(trouble)
        await_value(lambda: not group.membership.is_leader, WAIT_S, state)
        write("right")
        await_value(lambda: group.membership.is_leader, WAIT_S, state)
        assert group.failure is None
    finally:
        group.leave()
