"""All faults by their names: those that the modules of each area define."""

from collections.abc import Mapping
from typing import Final

from tests.faults import broker_faults, network_faults, spark_faults
from tests.faults.fault import Fault

FAULTS: Final[Mapping[str, Fault]] = {
    found.name: found
    for module in (spark_faults, broker_faults, network_faults)
    for found in vars(module).values()
    if isinstance(found, Fault)
}
