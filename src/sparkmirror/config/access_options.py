"""What a MirrorSourceConnector of ours can be told about ACLs, quotas and users beyond Kafka's options."""

from typing import Final

from sparkmirror.config.definitions import Option, Type
from sparkmirror.config.validators import OneOf

ACCESS: Final = (
    Option(
        "sync.acls",
        Type.STRING,
        "topic",
        "Which ACLs follow the source: those of literal topic patterns, as in MM2, or also those of "
        "prefixed ones, of all topics (*), of groups and of transactional ids. Rights to write to topics "
        "never do. Whether and how often is said by sync.topic.acls.enabled and …interval.seconds.",
        validator=OneOf(("topic", "all")),
    ),
    Option(
        "sync.acls.delete",
        Type.BOOLEAN,
        default=False,
        doc="Whether ACLs that the mirror made are removed when their source is gone. From when it's set "
        "on, what the mirror makes is remembered in mm2-acls.<source>.internal on the target; nothing "
        "else is ever removed.",
    ),
    Option(
        "sync.quotas",
        Type.BOOLEAN,
        default=False,
        doc="Whether the target's client quotas follow the source (KIP-546): of users, client ids and "
        "addresses, defaults included, every sync.topic.acls.interval.seconds. A quota that is gone at "
        "the source stays.",
    ),
    Option(
        "sync.users",
        Type.STRING,
        None,
        "A properties file of NAME=PASSWORD lines: users to create on the target where they lack a SCRAM "
        "credential that they have at the source, or where it has other iterations (KIP-554), every "
        "sync.topic.acls.interval.seconds. Passwords may be placeholders of config providers that the "
        "file names itself; Kafka does not give away those that the source has.",
    ),
)
