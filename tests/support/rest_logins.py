"""Two users of the REST API, and a connector whose config has secrets."""

import base64
from typing import Final

SECRET: Final = "planted-s3cret"
CONFIG: Final = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
    "tasks.max": "1",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
    "target.cluster.sasl.jaas.config": f'a.B required username="u" password="{SECRET}";',
    "target.cluster.ssl.keystore.password": SECRET,
    "transforms.x.registry": f"https://user:{SECRET}@registry.example",
}
MODULE: Final = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


OPS: Final = basic("ops", "right")
MIA: Final = basic("mia", "süß")
