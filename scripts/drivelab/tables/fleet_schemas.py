"""Arrow schemas of the fleet tables; `drivelab.tables.schemas` combines all schemas."""

from __future__ import annotations

from drivelab.tables.columns import schema

_OF_THE_VALUE = "str: measurement protocol cell_label metric kind unit"

FLEET_DRIVES = schema(
    # One row for each drive of the study, also if it failed or was never measured.
    "str: drive",
    "str: state",  # "measured" | "failed": its part of the study did not finish
    "str: reason?",  # of the failure
    "str: hosts model serial firmware",  # "not recorded" if no recording has it; several values are joined
    "int32: recordings planned",
    "int32: values",  # rows of its table `summary`
    "int32: faulty",  # unreliable values among them: not steady, tainted, too few runs …
    "int32: not_steady tainted",
    "int32: excluded",  # rows of its table `exclusions`
    "int32: outlying",  # values that are outliers among all drives
    "float: key_deviation_pct?",  # median deviation of its key values over its measurements; positive: better
    "int32: place?",  # rank by key_deviation_pct; 1 is the best
    "bool: reduced virtual",
    "str: clock?",  # "wall" | "virtual"; null without a value
)

FLEET_SPREAD = schema(
    # One row for each value: its spread over the drives of the fleet, without faulty values.
    _OF_THE_VALUE,
    "bool: is_key",  # the one value that represents its measurement
    "int32: drives faulty",  # numbers of drives with a counted value, and with a faulty value
    "float: median? p5? p95? min? max?",
    "float: mad?",  # median absolute deviation
    "float: robust_cv_pct?",  # 1.4826 mad / median: equals the coefficient of variation of a normal distribution
    "int32: outliers",
    "bool: reduced virtual",  # of any drive
    "str: clock",
)

FLEET_DEVIATIONS = schema(
    # One row for each value of each drive: its position among all drives.
    "str: drive",
    _OF_THE_VALUE,
    "bool: is_key",
    "float: value",
    "float: median?",  # of the counted values of all drives
    "float: deviation_pct?",  # from the median; positive: better
    "float: modified_z?",  # 0.6745 deviations from the median in median absolute deviations; positive: better
    "int32: place?",  # rank among the drives with a counted value; 1 is the best
    "bool: outlier",
    "str: verdict",  # of `summary`
    "str: taint_reason?",
    "bool: reduced virtual",
    "str: clock",
)

FLEET_HOSTS = schema(
    # The drives of one host compared with those of all others; one row for each key value and host.
    "str: host",
    _OF_THE_VALUE,
    "int32: drives others",
    "float: median others_median",
    "float: difference_pct",  # positive: the drives of this host are better
    "float: p_value p_adjusted",  # Mann-Whitney; adjusted for all rows (Benjamini-Hochberg)
)

FLEET_TABLES = {
    "fleet_drives": FLEET_DRIVES,
    "fleet_spread": FLEET_SPREAD,
    "fleet_deviations": FLEET_DEVIATIONS,
    "fleet_hosts": FLEET_HOSTS,
}
