"""Ready questions in SQL, which `drivelab query NUMBER` answers."""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """A question, the table that must have rows, and the statement that answers it."""

    words: str
    table: str
    sql: str


QUESTIONS = tuple(Question(*entry) for entry in (
    ("How fast is each drive at each workload?", "summary",
     "SELECT drive, measurement, cell_label, metric, value, unit, n, verdict FROM summary "
     "WHERE metric IN ('iops', 'bandwidth_mib_s', 'duration_s') ORDER BY measurement, cell_label, metric, drive"),
    ("Which drive is faster at what, and how sure is that?", "deltas",
     "SELECT comparison, basis, cell_label, metric, delta_pct, interval_low_pct, interval_high_pct, verdict "
     "FROM deltas ORDER BY abs(delta_pct) DESC"),
    ("Which differences have no verdict, and why?", "deltas",
     "SELECT comparison, cell_label, metric, verdict, doubts FROM deltas WHERE len(doubts) > 0"),
    ("What are the tails of the latency?", "summary",
     "SELECT drive, measurement, cell_label, metric, value AS latency_us, n FROM summary "
     "WHERE metric LIKE 'p9%_latency_us' ORDER BY measurement, cell_label, metric, drive"),
    ("Which loops reached steady state, and after how many rounds?", "steady_state",
     "SELECT drive, measurement, run, variable, metric, reached, rounds, window_start, window_end, "
     "measured_data_excursion, measured_slope_excursion FROM steady_state ORDER BY drive, measurement, run"),
    ("How large is the difference between runs of the same measurement?", "summary",
     "SELECT drive, measurement, cell_label, metric, n, rse_pct FROM summary "
     "WHERE n > 1 AND metric IN ('iops', 'bandwidth_mib_s') ORDER BY rse_pct DESC"),
    ("Which cells were disturbed, and by what?", "cells",
     "SELECT recording, cell_label, count(*) AS cells, any_value(taint_reason) AS reason FROM cells "
     "WHERE tainted GROUP BY ALL ORDER BY cells DESC"),
    ("What was left out of the results, and why?", "exclusions",
     "SELECT fault, count(*) AS places, any_value(words) AS example FROM exclusions GROUP BY fault "
     "ORDER BY places DESC"),
    ("How warm did each drive get, and did it slow down?", "telemetry",
     "SELECT drive, measurement, max(temperature_c) AS hottest_c, min(temperature_limit_c) AS limit_c, "
     "max(thermal_1_transitions) AS thermal_transitions FROM telemetry GROUP BY ALL ORDER BY hottest_c DESC"),
    ("What do the detectors say about the drives?", "findings",
     "SELECT drive, measurement, detector, words FROM findings WHERE found ORDER BY drive, measurement"),
    ("Which cells did the host limit, and how?", "cells",
     "SELECT recording, cell_label, count(*) AS cells, avg(iops) AS iops, any_value(host_limit) AS reason "
     "FROM cells WHERE host_limit IS NOT NULL GROUP BY ALL ORDER BY cells DESC"),
))  # fmt: skip
