"""Ready questions in SQL, which `drivelab query NUMBER` answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question, and the statement that answers it."""

    words: str
    sql: str
    table: str
    """The table that must have rows."""


QUESTIONS = (
    Question(
        "How fast is each drive at each workload?",
        "SELECT drive, measurement, cell_label, metric, value, unit, n, verdict FROM summary "
        "WHERE metric IN ('iops', 'bandwidth_mib_s', 'duration_s') ORDER BY measurement, cell_label, metric, drive",
        "summary",
    ),
    Question(
        "Which drive is faster at what, and how sure is that?",
        "SELECT comparison, basis, cell_label, metric, delta_pct, interval_low_pct, interval_high_pct, verdict "
        "FROM deltas ORDER BY abs(delta_pct) DESC",
        "deltas",
    ),
    Question(
        "Which differences have no verdict, and why?",
        "SELECT comparison, cell_label, metric, verdict, doubts FROM deltas WHERE len(doubts) > 0",
        "deltas",
    ),
    Question(
        "What are the tails of the latency?",
        "SELECT drive, measurement, cell_label, metric, value AS latency_us, n FROM summary "
        "WHERE metric LIKE 'p9%_latency_us' ORDER BY measurement, cell_label, metric, drive",
        "summary",
    ),
    Question(
        "Which loops reached steady state, and after how many rounds?",
        "SELECT drive, measurement, run, variable, metric, reached, rounds, window_start, window_end, "
        "measured_data_excursion, measured_slope_excursion FROM steady_state ORDER BY drive, measurement, run",
        "steady_state",
    ),
    Question(
        "How large is the difference between runs of the same measurement?",
        "SELECT drive, measurement, cell_label, metric, n, rse_pct FROM summary "
        "WHERE n > 1 AND metric IN ('iops', 'bandwidth_mib_s') ORDER BY rse_pct DESC",
        "summary",
    ),
    Question(
        "Which cells were disturbed, and by what?",
        "SELECT recording, cell_label, count(*) AS cells, any_value(taint_reason) AS reason FROM cells "
        "WHERE tainted GROUP BY ALL ORDER BY cells DESC",
        "cells",
    ),
    Question(
        "What was left out of the results, and why?",
        "SELECT fault, count(*) AS places, any_value(words) AS example FROM exclusions GROUP BY fault "
        "ORDER BY places DESC",
        "exclusions",
    ),
    Question(
        "How warm did each drive get, and did it slow down?",
        "SELECT drive, measurement, max(temperature_c) AS hottest_c, min(temperature_limit_c) AS limit_c, "
        "max(thermal_1_transitions) AS thermal_transitions FROM telemetry GROUP BY ALL ORDER BY hottest_c DESC",
        "telemetry",
    ),
    Question(
        "What do the detectors say about the drives?",
        "SELECT drive, measurement, detector, words FROM findings WHERE found ORDER BY drive, measurement",
        "findings",
    ),
    Question(
        "Which cells did the host limit, and how?",
        "SELECT recording, cell_label, count(*) AS cells, avg(iops) AS iops, any_value(host_limit) AS reason "
        "FROM cells WHERE host_limit IS NOT NULL GROUP BY ALL ORDER BY cells DESC",
        "cells",
    ),
)  # fmt: skip
