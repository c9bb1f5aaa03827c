"""Detect recovery from another workload, and the gain from idle time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drivelab.analysis.detectors.courses import STEADY_PCT
from drivelab.analysis.detectors.detection import Declared, Finding, Recording
from drivelab.analysis.values.recovery import cross_stimulus, idle_recovery


def recovery_times(recording: Recording) -> Iterator[Finding]:
    """Find recoveries from a stimulus (PTS XSR) and gains after idle time (PTS HIR).

    `value` is the time in seconds until the rate is back at its settled level, or the gain of the bursts in percent.
    """
    stimuli = cross_stimulus(recording.cells)
    findings = []
    for test in stimuli:
        after = f"after {test.stimulus}, {test.workload}"
        if test.settled is None:
            words = f"{after} does not return to its settled rate"
            findings.append(Finding(True, words, None, "bandwidth_mib_s", unit="s"))
        elif test.settled.slice_number > 1:
            most = "at most " * test.settled.at_most
            words = f"{after} takes {most}{test.settled.time_s:.3g} s to return to its settled rate"
            findings.append(Finding(True, words, None, "bandwidth_mib_s", test.settled.time_s, unit="s"))
    waits = idle_recovery(recording.cells)
    waits = waits[np.isfinite(waits["ratio"].to_numpy(dtype=float))]
    for wait in waits.itertuples():
        gain_pct = 100 * (float(wait.ratio) - 1)
        if gain_pct >= STEADY_PCT:
            words = f"after {wait.wait_s:g} s of idle time, bursts are {gain_pct:.0f} % faster than before"
            findings.append(Finding(True, words, None, "iops", gain_pct, STEADY_PCT, "%"))
    checked = [f"{len(stimuli)} stimuli"] * bool(stimuli) + [f"{len(waits)} waits"] * bool(len(waits))
    words = f"immediately at its usual rate after {' and '.join(checked)}"
    yield from findings or [Finding(False, words)] * bool(checked)


DETECTOR = Declared("recovery", recovery_times, place=15)
