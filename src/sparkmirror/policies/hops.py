"""Which clusters a topic has come through, as its name says under a policy (Java's `MirrorClient`)."""

from sparkmirror.policies.replication import ReplicationPolicy

NO_HOPS = -1


def sources(policy: ReplicationPolicy, topic: str) -> list[str]:
    """The nearest first. Ends where a name repeats: an Identity policy calls every topic its source's."""
    found: list[str] = []
    here: str | None = topic
    while here is not None:
        source = policy.topic_source(here)
        if source is None or source in found:
            break
        found.append(source)
        here = policy.upstream_topic(here)
    return found


def hops(policy: ReplicationPolicy, topic: str, alias: str) -> int:
    """How many replications away the cluster is; NO_HOPS if the topic has not come from it."""
    found = sources(policy, topic)
    return found.index(alias) + 1 if alias in found else NO_HOPS
