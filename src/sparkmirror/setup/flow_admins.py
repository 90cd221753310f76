"""Holds the admin clients of a flow's source connector, for both clusters."""

from sparkmirror.domain.ids import Flow
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.policies.admin_writes import AdminWrites
from sparkmirror.settings.configured import ConfiguredSource


class FlowAdmins:
    """Holds the admin plug-ins of a flow, until it is closed."""

    def __init__(self, flow: Flow, connector: ConfiguredSource) -> None:
        """Raises PluginError when a plug-in can't start."""
        self.connector = connector
        self.source = Admin(connector.source_admin)
        self.target = Admin(connector.target_admin)
        self.checks = Admin(connector.target_admin, checks_only=True)
        """Lets the target's brokers validate changes, and makes none."""
        self._writes = connector.admin_plugins.over(self.target, flow.target)

    @property
    def writes(self) -> AdminWrites:
        """Makes the changes to the target: the admin client, or a plug-in over it."""
        return self._writes

    def close(self) -> None:
        self.source.close()
        self.target.close()
        self.checks.close()
