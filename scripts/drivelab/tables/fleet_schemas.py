"""Arrow schemas of what is said of all drives of a fleet; `drivelab.tables.schemas` has all tables together."""

from __future__ import annotations

from drivelab.tables.columns import schema

_OF_THE_VALUE = "str: measurement protocol cell_label metric kind unit"

FLEET_DRIVES = schema(
    # One row for each drive of the study, also for one that failed or was never measured.
    "str: drive",
    "str: state",  # "measured" | "failed": its part of the study did not end
    "str: reason?",  # why it failed
    "str: hosts model serial firmware",  # "not recorded" where no recording says; several are joined
    "int32: recordings planned",
    "int32: values",  # rows of its table `summary`
    "int32: faulty",  # of them, those that cannot be relied on: not steady, tainted, too few runs …
    "int32: not_steady tainted",
    "int32: excluded",  # rows of its table `exclusions`
    "int32: outlying",  # values that are outliers among all drives
    "float: key_deviation_pct?",  # median over its measurements of how its key value deviates; positive: better
    "int32: place?",  # by key_deviation_pct, from 1: the best
    "bool: reduced virtual",
    "str: clock?",  # "wall" | "virtual"; null without a value
)

FLEET_SPREAD = schema(
    # One row for each value that drives of the fleet have: how it is spread over them. Faulty values count nowhere.
    _OF_THE_VALUE,
    "bool: is_key",  # the one value that stands for its measurement
    "int32: drives faulty",  # drives whose value counts, and those whose value is faulty
    "float: median? p5? p95? min? max?",
    "float: mad?",  # median absolute deviation
    "float: robust_cv_pct?",  # 1.4826 mad / median: the coefficient of variation, of a normal distribution
    "int32: outliers",
    "bool: reduced virtual",  # of any drive
    "str: clock",
)

FLEET_DEVIATIONS = schema(
    # One row for each value of each drive: where it stands among all drives.
    "str: drive",
    _OF_THE_VALUE,
    "bool: is_key",
    "float: value",
    "float: median?",  # of all drives' values that count
    "float: deviation_pct?",  # from the median; positive: better
    "float: modified_z?",  # 0.6745 deviations from the median in median absolute deviations; positive: better
    "int32: place?",  # among the drives whose value counts, from 1: the best
    "bool: outlier",
    "str: verdict",  # of `summary`
    "str: taint_reason?",
    "bool: reduced virtual",
    "str: clock",
)

FLEET_HOSTS = schema(
    # The drives of one host beside those of all others; one row for each key value and host.
    "str: host",
    _OF_THE_VALUE,
    "int32: drives others",
    "float: median others_median",
    "float: difference_pct",  # positive: the drives of this host are better
    "float: p_value p_adjusted",  # Mann-Whitney; adjusted after Benjamini and Hochberg for all rows
)

FLEET_TABLES = {
    "fleet_drives": FLEET_DRIVES,
    "fleet_spread": FLEET_SPREAD,
    "fleet_deviations": FLEET_DEVIATIONS,
    "fleet_hosts": FLEET_HOSTS,
}
