"""Assigns each test to a tier, named after the Make target that runs it.

`make check` runs the tier `check`, `make test` the tiers `check` and `test`, `make package-check` the tier
`package`, `make test-all` the tier `all`, which is the rest. An entry of `EXCEPTIONS` decides, else the name
of the file (a `check_*.py` belongs to the tier `all`), else a fixture of `FIXTURES`, else the test's folder.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Final


class Tier(Enum):
    CHECK = "check"
    TEST = "test"
    ALL = "all"
    PACKAGE = "package"
    BENCH = "bench"


FOLDERS: Final = {
    "unit": Tier.CHECK,
    "rest": Tier.CHECK,
    "model": Tier.TEST,
    "contract": Tier.TEST,
    "package": Tier.PACKAGE,
}
"""Folders below `tests`. Tests of other folders are in the tier `all`."""

FIXTURES: Final = {
    # The tier `test` has one pair of brokers, which all processes share.
    "trio": Tier.ALL,
    "frail_cluster": Tier.ALL,
    "old_bench": Tier.ALL,  # which is the frail cluster, as `old_side`; their tests get them by a parameter
    "old_side": Tier.ALL,
    "guarded_cluster": Tier.ALL,
    "real_trio": Tier.ALL,  # which has the frail cluster
    "three_brokers": Tier.ALL,
    "secured": Tier.ALL,
    # The mirror of the product that most system tests look at, and Spark on this machine.
    "mirrored": Tier.TEST,
    "session": Tier.TEST,
}
"""Fixtures that decide alone; the first one that a test has does."""

EXCEPTIONS: Final = {
    # What takes many seconds, and is shown by fewer seeds or values, too.
    "model/test_walks.py::test_random_walks_break_no_property[more]": Tier.ALL,
    "unit/test_drill.py": Tier.TEST,
    "unit/test_quotas.py": Tier.TEST,
    "unit/test_exploration.py": Tier.TEST,
    "unit/test_drill.py::test_runs_with_faults_end_with_every_record_once_and_in_order[more]": Tier.ALL,
    "unit/test_drill.py::test_preserved_offsets_survive_faults[more]": Tier.ALL,
    "unit/test_drill.py::test_transformed_records_survive_faults[more": Tier.ALL,
    "unit/test_rest_limits.py::test_no_error_holds_what_a_placeholder": Tier.ALL,
    "unit/test_rest_limits.py::test_no_error_holds_what_a_placeholder_stands_for[alone-servers": Tier.CHECK,
    "unit/test_worker_file.py::test_nothing_that_is_said_holds": Tier.ALL,
    "unit/test_worker_file.py::test_nothing_that_is_said_holds_what_a_placeholder_stands_for[alone-servers": (
        Tier.CHECK
    ),
    # Spark and brokers both: one query each way stands for the others.
    "spark/test_data_frames.py": Tier.ALL,
    "spark/test_data_frames.py::test_batch_query": Tier.TEST,
    "spark/test_data_frame_sink.py": Tier.ALL,
    "spark/test_data_frame_sink.py::test_batch_write[spark.batch": Tier.TEST,
    "spark/test_documented_frames.py": Tier.ALL,
    "spark/test_guide_examples.py": Tier.ALL,
    # What users call the product.
    "system/test_bad_input.py": Tier.TEST,
    "system/test_demo.py::test_demo": Tier.TEST,
    "system/test_exactly_once.py": Tier.TEST,
    "system/test_failures.py": Tier.TEST,
    "system/test_group_offset_sync.py": Tier.TEST,
    "system/test_life.py": Tier.TEST,
    "system/test_metrics.py": Tier.TEST,
    "system/test_plan.py": Tier.TEST,
    "system/test_plan.py::test_plan_after_a_mirror": Tier.ALL,
    "system/test_verify.py": Tier.TEST,
    "system/test_verify.py::test_only_new_records": Tier.ALL,
    "system/test_worker.py": Tier.TEST,
    # Two dozen brokers: `make soak` watches all combinations, for ten minutes.
    "system/check_idle_pairs.py::test_idle_pairs_do_not_grow[all]": Tier.BENCH,
    "spark/check_spark_connector.py": Tier.BENCH,  # fetches 60 MB: `make check-spark-connector`
    # Measures, and needs a quiet machine: `make bench-pages`.
    "system/check_rest_wait.py": Tier.BENCH,
    "system/check_quota_share.py": Tier.BENCH,  # `make bench-quotas`
    # More processes, or more minutes, than others with the same fixtures.
    "contract/test_causes.py::test_a_target_that_throttles": Tier.ALL,
    "contract/test_class_archive.py": Tier.ALL,
    "contract/test_client_quotas.py": Tier.ALL,
    "contract/test_clusters.py": Tier.ALL,
    "contract/test_far_away.py": Tier.ALL,
    "contract/test_one_broker_away.py": Tier.ALL,
    "rest/test_occupying_bodies.py": Tier.ALL,
    "spark/test_assignment.py": Tier.ALL,
    "spark/test_host_session.py": Tier.ALL,
    "system/test_active_active.py": Tier.ALL,
    "system/test_cycle_detection.py": Tier.ALL,
    "system/test_verify.py::test_running_mirror": Tier.ALL,
}
"""Files, or the beginnings of their tests, by the folder below `tests`. The longest that fits wins."""


def chosen(option: str) -> frozenset[Tier]:
    """Return the tiers that `--tiers` names, separated by commas; all of them if it names none."""
    return frozenset(Tier(name) for name in option.split(",") if name) or frozenset(Tier)


def may_hold(folder: str, tiers: frozenset[Tier]) -> bool:
    """Whether a folder below `tests` may have a test of these tiers: some tiers have folders of their own."""
    return not tiers <= {Tier.CHECK, Tier.PACKAGE} or FOLDERS.get(folder) in tiers


def tier_of(folder: str, test: str, fixtures: Iterable[str]) -> Tier:
    """Return the tier of a test, `test_file.py::test_name[parameters]`, of a folder below `tests`."""
    place = f"{folder}/{test}"
    exceptions = [entry for entry in EXCEPTIONS if place.startswith(entry)]
    if exceptions:
        return EXCEPTIONS[max(exceptions, key=len)]
    if test.startswith("check_"):
        return Tier.ALL
    used = set(fixtures)
    return next((tier for name, tier in FIXTURES.items() if name in used), FOLDERS.get(folder, Tier.ALL))


def missing_places(tests: Path) -> Iterator[str]:
    """Find the entries of `EXCEPTIONS` that fit no test any more."""
    for entry in EXCEPTIONS:
        place, _, name = entry.partition("::")
        folder, file = place.split("/")
        sources = [found.read_text(encoding="utf-8") for found in (tests / folder).rglob(file)]
        if not any(f"def {name.partition('[')[0]}" in source for source in sources):
            yield entry
