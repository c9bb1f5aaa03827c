"""Arrow schemas of what the analysis makes of cells; `drivelab.tables.schemas` has all of them together."""

from __future__ import annotations

from drivelab.tables.columns import KEY_LINES, schema

SUMMARY = schema(
    "str: drive measurement protocol cell_label metric",
    "str: kind",  # "speed" | "time" | "score"
    "str: unit",
    "float: value",
    "int32: n",  # repeats that `value` is made of: recordings, warm runs or rounds; 1 of one average
    "float: rse_pct?",
    "float: spread_low spread_high",  # lowest and highest of `samples`
    "floats: samples",  # what `value` stands on, in order: recordings, warm runs, rounds, parts of a soak
    "str: scope",  # what `samples` are repeats of: "recordings" | "runs" | "rounds" | "slices"
    "float: mad?",  # median absolute deviation of `samples`, in `unit`; null for fewer than three, as the interval
    "float: interval_low? interval_high?",  # 95 % bootstrap confidence interval of `value`
    "str: statistic",  # "window average" | "median of N warm rounds" | "average of the whole soak" | "best of N runs" …
    "str: verdict",
    "str: taint_reason?",  # of the cells that the value stands on
    "bool: reduced virtual",
    "str: clock",
    "strs: recordings",
    "strs: evidence",  # recording/directory of each cell that `value` stands on
)

DELTAS = schema(
    "str: measurement protocol cell_label metric kind unit basis comparison",
    "float: basis_value comparison_value",
    "int32: basis_n comparison_n",  # number of `samples` on each side, not `n`
    "float: delta_pct?",  # positive: the comparison is better; null: not compared, or of another statistic
    "float: interval_low_pct? interval_high_pct?",  # confidence interval of delta_pct; null: too few samples for one
    "float: p_value? p_adjusted?",  # of no difference; adjusted for all comparisons that can be called, else null
    "float: equivalence_p? equivalence_p_adjusted?",  # of a difference beyond the margin
    "float: margin_pct",
    "str: verdict",  # "better" | "worse" | "same" | "cannot tell" | "not compared"
    "str: scope",  # as in `summary`; "rounds" and "slices": within one recording
    "bool: reduced virtual",  # one of the two at least
    "str: clock",  # "wall" | "virtual" | "wall and virtual"
    "strs: doubts",  # why it cannot tell, a sentence's part each
    "strs: remarks",  # what the verdict does not show
)

CONDITIONS = schema(
    # What a recording was made under, one row for each facet: what two recordings may differ in.
    "str: recording drive measurement facet",  # facet: "kernel", "firmware", "setting: cpu governor" …
    "str: kind",  # "drive" | "host" | "protocol" | "setting" | "time"
    "str: value",
)

DIFFERENCES = schema(
    # Of each compared pair, every facet that is not the same.
    "str: measurement basis comparison facet kind basis_value comparison_value",
    "bool: intended",
)

FINDINGS = schema(
    # What a detector says of a recording; a detector that looked and found nothing says so too.
    *KEY_LINES,
    "str: detector",  # a name of drivelab.analysis.detectors.DETECTORS
    "str: cell_label?",
    "bool: found",
    "str: metric?",
    "float: value? threshold?",  # the detector's statistic, and from where on it is a finding
    "str: unit?",  # of value and threshold
    "float: begin_s? end_s?",  # of the measurement, where it has a place in time
    "str: words",  # the finding in a sentence, with its numbers
)

SATURATION = schema(
    # Of each soak that saturates a drive: its cliff, and what it comes to. Levels are IOPS.
    *KEY_LINES,
    "int32: step",
    "str: cell_label",
    "int32: slices",
    "bool: cliff",  # whether there is one; the columns of the cliff are null where there is not
    "float: cliff_time_s?",
    "int64: cliff_bytes?",
    "float: cliff_drive_fills? iops_before? iops_after?",
    "float: level_iops level_low_iops level_high_iops",  # over the slices that count
    "float: level_variation_pct?",  # standard deviation of their IOPS, of the mean
    "float: level_drift_pct?",  # rise of the least-squares line over them, of the mean
    "bool: level_steady",
    "float: level_from_s level_from_drive_fills",
    "int64: bytes_written",
    "float: drive_fills",
)

EXCLUSIONS = schema(
    # What is left out of every result, and why.
    "str: recording drive measurement place",  # place: "round 3, RND 4KiB 0/100", or "recording"
    "str: fault",  # one of drivelab.analysis.soundness.FAULTS
    "str: words",
)

RESULT_TABLES = {
    "findings": FINDINGS,
    "saturation": SATURATION,
    "summary": SUMMARY,
    "deltas": DELTAS,
    "conditions": CONDITIONS,
    "differences": DIFFERENCES,
    "exclusions": EXCLUSIONS,
}
