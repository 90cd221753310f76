"""What a cluster says of itself and of what we may do there: the ground on which a plan is judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.domain.acls import AclOperation, ResourceType
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.rights import Right, grant_command

Operations = frozenset[AclOperation]


class ApiRange(NamedTuple):
    """The versions of a request that a broker speaks."""

    low: int
    high: int


class SurveyedBroker(NamedTuple):
    """`versions` are by the numbers of Kafka's requests."""

    address: str
    versions: Mapping[int, ApiRange]


@dataclass(frozen=True, slots=True)
class ClusterSurvey:
    """Operations are None where the cluster doesn't tell them (KIP-430: brokers before 2.3, no right to ask).

    `errors` are Kafka's codes for topics that were asked for by name, 0 for those that are there.
    """

    alias: Alias
    cluster_id: str = ""
    principal: str = ""
    bootstrap_servers: str = ""
    brokers: tuple[SurveyedBroker, ...] = ()
    operations: Operations | None = None
    topic_operations: Mapping[str, Operations] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)

    def lacks(self, right: Right) -> bool:
        """Whether it's certain that we lack a right on a topic or on the cluster."""
        if right.resource_type is ResourceType.CLUSTER:
            return self.operations is not None and right.operation not in self.operations
        known = self.topic_operations.get(right.name)
        if known is None or right.operation in known:
            return False
        if right.operation is not AclOperation.CREATE:
            return True
        # Who may create any topic need not be named for each.
        return self.operations is not None and AclOperation.CREATE not in self.operations

    def grant(self, right: Right) -> str:
        """The command that gives us the right."""
        return grant_command(right, self.principal, self.bootstrap_servers)
