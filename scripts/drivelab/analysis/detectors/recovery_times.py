"""How long a drive takes to recover from another workload, and what idle time gives back to it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drivelab.analysis.detectors.finding import Finding, told_or_nothing
from drivelab.analysis.detectors.recording import Recording
from drivelab.analysis.recovery import cross_stimulus, idle_recovery

LEAST_GAIN_PCT = 10.0
"""By which bursts after idle time are faster than what the drive had settled at: what the PTS lets a steady rate be
off (ours)."""


def recovery_times(recording: Recording) -> Iterator[Finding]:
    """After a stimulus (PTS XSR) `value` is the time in seconds until the rate is what it had settled at before; of
    idle time (PTS HIR) the gain in percent of the bursts after it."""
    crossed = cross_stimulus(recording.cells)
    found = []
    for one in crossed:
        after = f"after {one.stimulus}, {one.workload}"
        if one.settled is None:
            words = f"{after} does not come back to the rate that it had settled at"
            found.append(Finding(True, words, None, "bandwidth_mib_s", unit="s"))
        elif one.settled.slice_number > 1:
            most = "at most " * one.settled.at_most
            words = f"{after} takes {most}{one.settled.time_s:.3g} s to come back to the rate that it had settled at"
            found.append(Finding(True, words, None, "bandwidth_mib_s", one.settled.time_s, unit="s"))
    waits = idle_recovery(recording.cells)
    waits = waits[np.isfinite(waits["ratio"].to_numpy(dtype=float))]
    for wait in waits.itertuples():
        gain_pct = 100 * (float(wait.ratio) - 1)
        if gain_pct >= LEAST_GAIN_PCT:
            words = f"after {wait.wait_s:g} s of idle time bursts are {gain_pct:.0f} % faster than before it"
            found.append(Finding(True, words, None, "iops", gain_pct, LEAST_GAIN_PCT, "%"))
    looked = [f"{len(crossed)} stimuli"] * bool(crossed) + [f"{len(waits)} waits"] * bool(len(waits))
    words = f"at its usual rate at once after {' and '.join(looked)}"
    yield from told_or_nothing(found, Finding(False, words) if looked else None)
