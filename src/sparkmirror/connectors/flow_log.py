"""A logger that says of which flow and connector it speaks, as attributes that the log's format shows."""

import logging
from typing import TypeAlias

from sparkmirror.domain.ids import ConnectorName, Flow

FlowLog: TypeAlias = "logging.LoggerAdapter[logging.Logger]"


def flow_log(module: str, flow: Flow, connector: ConnectorName | None = None) -> FlowLog:
    about = {"flow": str(flow)} if connector is None else {"flow": str(flow), "connector": connector}
    return logging.LoggerAdapter(logging.getLogger(module), about)
