"""`/openapi.json`: what the API offers, by Kafka's names and summaries; `/docs` shows it to people.

Internal requests are left out, as in Kafka's own description.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sparkmirror.connect.rest.answers import Answer, json_answer
from sparkmirror.connect.rest.endpoints import Endpoint
from sparkmirror.connect.validation import KAFKA_VERSION

Schema = dict[str, Any]


class Query(NamedTuple):
    name: str
    about: str
    schema: Schema


class Operation(NamedTuple):
    """`statuses`: of answers that are no errors; `answers` and `asks` are bodies."""

    verb: str
    path: str
    name: str
    summary: str
    statuses: Sequence[int] = (200,)
    answers: Schema | None = None
    asks: Schema | None = None
    queries: Sequence[Query] = ()


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _map(of: Schema) -> Schema:
    return {"type": "object", "additionalProperties": of}


def _object(_required: Sequence[str] = (), /, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(_required)} if _required else schema


_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "integer", "format": "int32"}
_LONG: Final[Schema] = {"type": "integer", "format": "int64"}
_FLAG: Final[Schema] = {"type": "boolean"}
_CONFIG: Final = _map(_TEXT)
_PATCH: Final = _map({"type": "string", "nullable": True})

_ONE: Final = "/connectors/{connector}"
_PLUGIN: Final = "/connector-plugins/{pluginName}"
_LOGGER: Final = "/admin/loggers/{logger}"

OPERATIONS: Final = (
    Operation(
        "get",
        "/",
        "serverInfo",
        "Get details about this Connect worker and the ID of the Kafka cluster it is connected to",
        answers=_ref("ServerInfo"),
    ),
    Operation(
        "get",
        "/health",
        "healthCheck",
        "Health check endpoint to verify worker readiness and liveness",
        answers=_ref("WorkerStatus"),
    ),
    Operation(
        "get",
        "/connectors",
        "listConnectors",
        "List all active connectors",
        answers={"oneOf": [_list(_TEXT), _map(_ref("Expanded"))]},
        queries=(Query("expand", "What to say of each, by its name", _list({"enum": ["status", "info"]})),),
    ),
    Operation(
        "post",
        "/connectors",
        "createConnector",
        "Create a new connector",
        (201,),
        _ref("ConnectorInfo"),
        _ref("CreateConnectorRequest"),
    ),
    Operation(
        "get",
        _ONE,
        "getConnector",
        "Get the details for the specified connector",
        (200,),
        _ref("ConnectorInfo"),
    ),
    Operation("delete", _ONE, "destroyConnector", "Delete the specified connector", (204,)),
    Operation(
        "get",
        _ONE + "/config",
        "getConnectorConfig",
        "Get the configuration for the specified connector",
        answers=_CONFIG,
    ),
    Operation(
        "put",
        _ONE + "/config",
        "putConnectorConfig",
        "Create or reconfigure the specified connector",
        (200, 201),
        _ref("ConnectorInfo"),
        _CONFIG,
    ),
    Operation(
        "patch",
        _ONE + "/config",
        "patchConnectorConfig",
        "Change parts of the configuration of the specified connector; null removes a key",
        answers=_ref("ConnectorInfo"),
        asks=_PATCH,
    ),
    Operation(
        "get",
        _ONE + "/status",
        "getConnectorStatus",
        "Get the status for the specified connector",
        answers=_ref("ConnectorStateInfo"),
    ),
    Operation(
        "post",
        _ONE + "/restart",
        "restartConnector",
        "Restart the specified connector",
        (202, 204),
        _ref("ConnectorStateInfo"),
        queries=(
            Query("includeTasks", "Whether to also restart tasks", {**_FLAG, "default": False}),
            Query(
                "onlyFailed", "Whether to only restart failed tasks/connectors", {**_FLAG, "default": False}
            ),
        ),
    ),
    Operation("put", _ONE + "/pause", "pauseConnector", "Pause the specified connector", (202,)),
    Operation("put", _ONE + "/resume", "resumeConnector", "Resume the specified connector", (202,)),
    Operation("put", _ONE + "/stop", "stopConnector", "Stop the specified connector", (204,)),
    Operation(
        "get",
        _ONE + "/tasks",
        "getTaskConfigs",
        "List all tasks and their configurations for the specified connector",
        answers=_list(_ref("TaskInfo")),
    ),
    Operation(
        "get",
        _ONE + "/tasks/{task}/status",
        "getTaskStatus",
        "Get the state of the specified task for the specified connector",
        answers=_ref("TaskState"),
    ),
    Operation(
        "post",
        _ONE + "/tasks/{task}/restart",
        "restartTask",
        "Restart the specified task for the specified connector",
        (204,),
    ),
    Operation(
        "get",
        _ONE + "/topics",
        "getConnectorActiveTopics",
        "Get the list of topics actively used by the specified connector",
        answers=_map(_object(topics=_list(_TEXT))),
    ),
    Operation(
        "put",
        _ONE + "/topics/reset",
        "resetConnectorActiveTopics",
        "Reset the list of topics actively used by the specified connector",
        (202,),
    ),
    Operation(
        "get",
        _ONE + "/offsets",
        "getOffsets",
        "Get the current offsets for the specified connector",
        answers=_ref("ConnectorOffsets"),
    ),
    Operation(
        "patch",
        _ONE + "/offsets",
        "alterConnectorOffsets",
        "Alter the offsets for the specified connector",
        answers=_ref("Message"),
        asks=_ref("ConnectorOffsets"),
    ),
    Operation(
        "delete",
        _ONE + "/offsets",
        "resetConnectorOffsets",
        "Reset the offsets for the specified connector",
        answers=_ref("Message"),
    ),
    Operation(
        "get",
        _ONE + "/plan",
        "getConnectorPlan",
        "Get what the specified source connector would create, alter, copy and leave out (not Connect's)",
        answers=_ref("FlowPlan"),
    ),
    Operation(
        "get",
        "/connector-plugins",
        "listConnectorPlugins",
        "List all connector plugins installed",
        answers=_list(_ref("PluginInfo")),
        queries=(
            Query(
                "connectorsOnly",
                "Whether to list only connectors instead of all plugins",
                {**_FLAG, "default": True},
            ),
        ),
    ),
    Operation(
        "get",
        _PLUGIN + "/config",
        "getConnectorConfigDef",
        "Get the configuration definition for the specified pluginName",
        answers=_list(_ref("ConfigKeyInfo")),
    ),
    Operation(
        "put",
        _PLUGIN + "/config/validate",
        "validateConfigs",
        "Validate the provided configuration against the configuration definition for the specified"
        " pluginName",
        answers=_ref("ConfigInfos"),
        asks=_CONFIG,
    ),
    Operation(
        "get",
        "/admin/loggers",
        "listLoggers",
        "List the current loggers that have their levels explicitly set and their log levels",
        answers=_map(_ref("LoggerLevel")),
    ),
    Operation(
        "get", _LOGGER, "getLogger", "Get the log level for the specified logger", answers=_ref("LoggerLevel")
    ),
    Operation(
        "put",
        _LOGGER,
        "setLevel",
        "Set the log level for the specified logger",
        (200, 204),
        _list(_TEXT),
        _object(("level",), level=_TEXT),
        (
            Query(
                "scope",
                "The scope for the logging modification (single-worker, cluster-wide, etc.)",
                {"type": "string", "enum": ["worker", "cluster"], "default": "worker"},
            ),
        ),
    ),
)

_STATE: Final = {
    "state": {
        "type": "string",
        "enum": ["UNASSIGNED", "RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING"],
    },
    "worker_id": _TEXT,
    "trace": _TEXT,
    "version": _TEXT,
}
_TASK_ID: Final = _object(connector=_TEXT, task=_NUMBER)
_TYPE: Final = {"type": "string", "enum": ["source", "sink", "unknown"]}

_SCHEMAS: Final[Mapping[str, Schema]] = {
    "ErrorMessage": _object(("error_code", "message"), error_code=_NUMBER, message=_TEXT),
    "ServerInfo": _object(version=_TEXT, commit=_TEXT, kafka_cluster_id=_TEXT),
    "WorkerStatus": _object(status=_TEXT, message=_TEXT),
    "Message": _object(message=_TEXT),
    "Expanded": _object(status=_ref("ConnectorStateInfo"), info=_ref("ConnectorInfo")),
    "CreateConnectorRequest": _object(
        ("config",),
        name=_TEXT,
        config=_CONFIG,
        initial_state={"type": "string", "enum": ["RUNNING", "PAUSED", "STOPPED"]},
    ),
    "ConnectorInfo": _object(name=_TEXT, config=_CONFIG, tasks=_list(_TASK_ID), type=_TYPE),
    "ConnectorStateInfo": _object(
        name=_TEXT, connector=_object(**_STATE), tasks=_list(_ref("TaskState")), type=_TYPE
    ),
    "TaskState": _object(id=_NUMBER, **_STATE),
    "TaskInfo": _object(id=_TASK_ID, config=_CONFIG),
    "ConnectorOffsets": _object(("offsets",), offsets=_list(_ref("ConnectorOffset"))),
    "ConnectorOffset": _object(
        ("partition", "offset"), partition=_map({}), offset={**_map({}), "nullable": True}
    ),
    "FlowPlan": _object(
        source=_TEXT,
        target=_TEXT,
        target_cluster_id=_TEXT,
        connector=_TEXT,
        blocked=_FLAG,
        counts=_map(_NUMBER),
        changes=_list(_ref("PlannedChange")),
        copy=_ref("PlannedCopying"),
        skipped=_list(_object(topic=_TEXT, rule=_TEXT, why=_TEXT)),
        findings=_list(_object(kind=_TEXT, severity=_TEXT, subject=_TEXT, text=_TEXT, remedy=_TEXT)),
    ),
    "PlannedChange": _object(
        action={"enum": ["create", "alter", "delete"]},
        kind=_TEXT,
        cluster=_TEXT,
        name=_TEXT,
        text=_TEXT,
        details=_map({}),
    ),
    "PlannedCopying": _object(
        tasks=_NUMBER,
        partitions=_NUMBER,
        records=_LONG,
        bytes={**_LONG, "nullable": True},
        seconds={"type": "number", "nullable": True},
        rate={**_object(bytes_per_second=_LONG, origin=_TEXT), "nullable": True},
        of=_list(_map({})),
    ),
    "PluginInfo": _object(**{"class": _TEXT, "type": _TEXT, "version": _TEXT}),
    "ConfigInfos": _object(
        name=_TEXT,
        error_count=_NUMBER,
        groups=_list(_TEXT),
        configs=_list(_object(definition=_ref("ConfigKeyInfo"), value=_ref("ConfigValueInfo"))),
    ),
    "ConfigKeyInfo": _object(
        name=_TEXT,
        type=_TEXT,
        required=_FLAG,
        default_value=_TEXT,
        importance=_TEXT,
        documentation=_TEXT,
        group=_TEXT,
        order_in_group=_NUMBER,
        width=_TEXT,
        display_name=_TEXT,
        dependents=_list(_TEXT),
    ),
    "ConfigValueInfo": _object(
        name=_TEXT,
        value=_TEXT,
        recommended_values=_list(_TEXT),
        errors=_list(_TEXT),
        visible=_FLAG,
    ),
    "LoggerLevel": _object(
        level=_TEXT, last_modified={"type": "integer", "format": "int64", "nullable": True}
    ),
}


def openapi_routes() -> list[Route]:
    return [
        Route("/openapi.json", Endpoint({"GET": _description}, consumes_json=False, produces_json=False)),
        Route("/docs", Endpoint({"GET": _docs}, consumes_json=False, produces_json=False)),
    ]


async def _description(_request: Request) -> Answer:
    return json_answer(openapi())


async def _docs(_request: Request) -> Answer:
    return HTMLResponse((files("sparkmirror.connect.rest") / "docs.html").read_text(encoding="utf-8"))


@cache
def openapi() -> Schema:
    """The description, as OpenAPI 3.0 has it."""
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.verb] = _described(operation)
    return {
        "openapi": "3.0.1",
        "info": {
            "title": "Kafka Connect REST API",
            "description": "The REST API of Apache Kafka Connect, served by sparkmirror.",
            "version": KAFKA_VERSION,
        },
        "paths": paths,
        "components": {"schemas": dict(_SCHEMAS)},
    }


def _described(operation: Operation) -> Schema:
    described: Schema = {"operationId": operation.name, "summary": operation.summary}
    parameters = [*_in_path(operation.path), *map(_in_query, operation.queries)]
    if parameters:
        described["parameters"] = parameters
    if operation.asks is not None:
        described["requestBody"] = {"required": True, **_json(operation.asks)}
    described["responses"] = {
        **{str(status): _response(status, operation.answers) for status in operation.statuses},
        "default": {"description": "An error", **_json(_ref("ErrorMessage"))},
    }
    return described


def _in_path(path: str) -> Iterable[Schema]:
    for segment in path.split("/"):
        if segment.startswith("{"):
            name = segment.strip("{}")
            schema = _NUMBER if name == "task" else _TEXT
            yield {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(query: Query) -> Schema:
    return {"name": query.name, "in": "query", "description": query.about, "schema": query.schema}


def _response(status: int, answers: Schema | None) -> Schema:
    description = {201: "Created", 202: "Accepted", 204: "Done"}.get(status, "Success")
    body = {} if answers is None or status == 204 else _json(answers)
    return {"description": description, **body}


def _json(schema: Schema) -> Schema:
    return {"content": {"application/json": {"schema": schema}}}
