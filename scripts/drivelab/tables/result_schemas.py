"""Arrow schemas of the analysis results; `drivelab.tables.schemas` combines all schemas."""

from __future__ import annotations

import pyarrow as pa

from drivelab.tables.columns import KEY_LINES, SHAPE_LINES, TELEMETRY_LINES, schema

SUMMARY = schema(
    "str: drive measurement protocol cell_label",
    *SHAPE_LINES,
    "str: metric",
    "str: kind",  # "speed" | "time" | "score"
    "str: unit",
    "float: value",
    "int32: n",  # repeats behind `value`: recordings, warm runs or rounds; 1 for a single average
    "float: rse_pct?",
    "float: spread_low spread_high",  # lowest and highest of `samples`
    "floats: samples",  # values behind `value`, in order: of recordings, warm runs, rounds, parts of a soak
    "str: scope",  # kind of `samples`: "recordings" | "runs" | "rounds" | "slices" | "rates"
    "float: mad?",  # median absolute deviation of `samples`, in `unit`; null for fewer than three
    "float: interval_low? interval_high?",  # 95 % confidence interval of `value`; null for fewer than 3 recordings
    "float: asymptote_pct?",  # of a window average: fitted asymptote relative to `value`; 0: the rounds approach none
    "str: statistic",  # "window average" | "median of N warm rounds, geometric mean of 3 recordings" …
    "str: verdict",
    "str: taint_reason?",  # of the cells behind `value`
    "str: host_limit?",  # why the host may limit them: a speed is at least `value`, a time at most; null: no sign
    "float: disturbance_pct?",  # by how much load of others may have changed `value` at most; null: none, or unbounded
    "bool: reduced virtual",
    "str: clock",
    "strs: recordings",
    "strs: evidence",  # recording/directory of each cell behind `value`
)

DELTAS = schema(
    # Also of the table model_deltas, whose basis and comparison are models: specimens count instead of recordings.
    "str: measurement protocol cell_label",
    *SHAPE_LINES,
    "str: metric kind unit basis comparison",
    "float: basis_value comparison_value",
    "int32: basis_n comparison_n",  # recordings on each side
    "float: delta_pct?",  # positive: the comparison is better; null: not compared
    "float: interval_low_pct? interval_high_pct?",  # confidence interval of delta_pct; null: too few recordings
    "float: asymptote_delta_pct?",  # delta_pct of the fitted asymptotes; null: not of windows
    "float: disturbance_pct?",  # by how much load of others may have changed the ratio; the interval includes it
    "float: log_error? freedom?",  # standard error of log(comparison / basis), and its degrees of freedom
    "float: p_value? p_adjusted?",  # of no difference; adjusted for all testable comparisons, else null
    "float: equivalence_p? equivalence_p_adjusted?",  # of a difference beyond the margin
    "float: margin_pct",
    "int32: recordings_needed?",  # about how many a side would decide; null: decided, or more recordings do not help
    "str: verdict",  # see drivelab.analysis.verdict.DELTA_VERDICTS
    "bool: reduced virtual",  # at least one side
    "str: clock",  # "wall" | "virtual" | "wall and virtual"
    "strs: doubts",  # reasons for "cannot tell", each a part of a sentence
    "strs: remarks",  # caveats that the verdict does not show
)

VARIATION = schema(
    # What makes the values of a measurement vary, as standard deviations of the logarithm.
    "str: measurement protocol metric subject",  # subject: a drive, a model, or a drive on several platforms
    "str: source",  # "rounds" of a recording | "recordings" of a drive | "specimens" of a model | "hosts" of a drive
    "int32: cells n",  # n: rounds, recordings, specimens or platforms
    "float: sd_pct low_pct high_pct",  # beyond what the sources above explain; 95 % interval
    "bool: reduced virtual",
    "str: clock",
)

CONDITIONS = schema(
    # The conditions of a recording, one row for each facet: a property in which two recordings may differ.
    "str: recording drive measurement facet",  # facet: "kernel", "firmware", "setting: cpu governor" …
    "str: kind",  # "drive" | "file system" | "host" | "protocol" | "setting" | "time"
    "str: value",
)

DIFFERENCES = schema(
    # Every facet that differs between the two drives of a compared pair, or is "not recorded" on one or both sides.
    # The kind "cannot act" is a difference without effect, such as read-ahead under direct I/O.
    "str: measurement basis comparison facet kind basis_value comparison_value",
    "bool: intended",
)

FINDINGS = schema(
    # The result of each detector on a recording, also if it found nothing.
    *KEY_LINES,
    "str: detector",  # as in docs/detectors.md
    "str: cell_label?",
    "bool: found",
    "str: metric?",
    "float: value? threshold?",  # the detector's statistic, and the threshold of a finding
    "str: unit?",  # of value and threshold
    "float: begin_s? end_s?",  # time since the start of the measurement; null without a time
    "str: words",  # the finding as a sentence with its numbers
)

SATURATION = schema(
    # Cliff and level of each soak that saturates a drive. Levels are in IOPS.
    *KEY_LINES,
    "int32: step",
    "str: cell_label",
    "int32: slices",
    "bool: cliff",  # whether there is a cliff; else its columns are null
    "float: cliff_time_s?",
    "int64: cliff_bytes?",
    "float: cliff_drive_fills? iops_before? iops_after?",
    "float: level_iops level_low_iops level_high_iops",  # over the counted slices
    "float: level_variation_pct?",  # standard deviation of their IOPS, relative to the mean
    "float: level_drift_pct?",  # rise of the least-squares line over them, relative to the mean
    "bool: level_steady",
    "float: level_from_s level_from_drive_fills",
    "int64: bytes_written",
    "float: drive_fills",
)

EXCLUSIONS = schema(
    # Data excluded from every result, and why.
    "str: recording drive measurement place",  # place: "round 3, RND 4KiB 0/100", or "recording"
    "str: fault",  # one of FAULTS of scripts/drivelab/criteria/soundness.py
    "str: words",
)

RESULT_TABLES = {
    "findings": FINDINGS,
    "saturation": SATURATION,
    "summary": SUMMARY,
    "deltas": DELTAS,
    "model_deltas": DELTAS,
    "variation": VARIATION,
    "conditions": CONDITIONS,
    "differences": DIFFERENCES,
    "exclusions": EXCLUSIONS,
}


APPLICATION_RUNS = schema(
    # One row per run. If a replay replaces the application, columns that it cannot know are null.
    *KEY_LINES,
    "int32: step",
    "str: phase? phase_value?",
    "int32: phase_pass?",
    "str: application",
    "int32: repeat",  # from 1, cold runs included; `run` is the run of the whole measurement
    "bool: cold counted",
    "int32: asked_passes?",  # null: until the warm runs agree
    "float: duration_s",  # from the start of the command until all of its writes are on the drive
    "float: command_s? sync_s?",  # parts of duration_s: the command, then the sync of its file system
    "int32: exit_status?",
    "int64: read_ios write_ios read_bytes write_bytes",  # kernel counters of the drive
    "float: user_s? system_s?",  # CPU time of the command and its children
    "int64: max_rss_bytes?",
    "str: simulated_from?",  # the trace whose replay replaces the application; no application ran
    "bool: after_gap",  # the measurement was interrupted and resumed just before
    *TELEMETRY_LINES,
)

APPLICATION_TABLES: dict[str, pa.Schema] = {"application_runs": APPLICATION_RUNS}
