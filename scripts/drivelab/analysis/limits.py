"""The closed list of labels that limit a study's numbers, and the values that they concern."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from drivelab.criteria.taint import is_busy

EXCLUDED = "data excluded"
ALSO_DIFFERS = "unintended differences"
NOT_RECORDED = "conditions not recorded"
IMPORTED = "imported"
PARTIAL = "partial replay"
NOT_STEADY = "not steady"
NOT_REPEATABLE = "not repeatable"
BUSY = "busy machine"
TAINTED = "tainted"
HOST_LIMITED = "host-limited"
FEW_RECORDINGS = "too few recordings"
SINGLE_RECORDING = "single recording"
LOSSY = "lossy trace"
SIMULATED = "simulated application"
NOT_PURGED = "not purged"
VIRTUAL_CLOCK = "virtual clock"
VIRTUAL = "virtual drive"
REDUCED = "reduced"
LABELS = (
    EXCLUDED, ALSO_DIFFERS, NOT_RECORDED, IMPORTED, PARTIAL, NOT_STEADY, NOT_REPEATABLE, BUSY, TAINTED,
    HOST_LIMITED, FEW_RECORDINGS, SINGLE_RECORDING, LOSSY, SIMULATED, NOT_PURGED, VIRTUAL_CLOCK, VIRTUAL, REDUCED,
)  # fmt: skip
"""Most severe first."""
NO_PURGE = ("not purged", "none")
"""Values of the facet `purge`: the study left out a purge that the protocol requires; the protocol requires none."""


def not_purged(conditions: pd.DataFrame) -> set[tuple[str, str]]:
    """Return (drive, measurement) of each recording without a purge, from table `conditions`."""
    if conditions.empty:
        return set()
    left_out = conditions[(conditions["facet"] == "purge") & conditions["value"].isin(NO_PURGE)]
    return set(zip(left_out["drive"], left_out["measurement"], strict=True))


def is_imported(recordings: Iterable[str]) -> bool:
    """Return whether all recordings of a value are imported, by their names."""
    return all("/imported-" in name for name in recordings)


def limited(values: pd.DataFrame, conditions: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of table `summary` that each label concerns, most severe label first.

    Labels that concern no row are left out, and so are those that need other tables than `values` and `conditions`.
    """
    unpurged = not_purged(conditions)
    tests = zip(values["drive"], values["measurement"], strict=True)
    concerned = {
        IMPORTED: values["recordings"].map(is_imported),
        BUSY: values["taint_reason"].map(is_busy),
        TAINTED: values["taint_reason"].notna() & ~values["taint_reason"].map(is_busy),
        HOST_LIMITED: values["host_limit"].notna() if "host_limit" in values else values["verdict"] == HOST_LIMITED,
        SINGLE_RECORDING: values["recordings"].str.len() == 1,
        NOT_PURGED: [test in unpurged for test in tests],
        VIRTUAL_CLOCK: values["clock"].str.contains("virtual"),
        VIRTUAL: values["virtual"],
        REDUCED: values["reduced"],
    }
    rows = {label: values[np.asarray(mask, dtype=bool)] for label, mask in concerned.items()}
    return {label: rows[label] for label in LABELS if label in rows and len(rows[label])}
