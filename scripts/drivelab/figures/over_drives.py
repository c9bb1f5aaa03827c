"""Figures that compare the drives, or the block sizes, of a measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drivelab.figures.of_recording import OVER_DRIVES, OVER_SIZES, figure_kinds, figures_of
from drivelab.figures.registry import FIGURES
from drivelab.plan.plan import Plan, canonical

OF_THE_STUDY = ("deltas", "summary", "drives", "exclusions")
"""Tables of the whole study; each recording has its own of the others."""

_OVER_DRIVES_OF = {
    "histogram": "drives_latency",
    "nines": "drives_latency",
    "demand": "drives_ramp",
    "mixes": "drives_mixes",
    "zones": "drives_zones",
    "grid": "drives_grid",
    "volume": "drives_volume",
    "soak": "drives_strip",
    "stimulus": "drives_strip",
    "application": "drives_application",
    "load": "drives_load",
}
"""Kind of figure over drives, by the kind that each drive's recording must have."""


def figures_over_drives(plans: Sequence[Plan], measurement: str, basis: str) -> list[str]:
    """Return the figures that compare the recordings of a measurement, or those of all its block sizes."""
    if any(plan.measurement != measurement for plan in plans):
        return figures_of(OVER_SIZES)
    return figures_of(kinds_over_drives(plans, basis))


def kinds_over_drives(plans: Sequence[Plan], basis: str) -> tuple[str, ...]:
    """Return the kinds of OVER_DRIVES for the recordings of one measurement; `basis` is the drive to compare with.

    A figure over drives needs the data of all drives. Drives that were measured at the same time share a clock; other
    drives are drawn from their own start.
    """
    subjects = {plan.drive for plan in plans}
    together = any("simultaneous" in plan.subject for plan in plans)
    kinds = {"head_to_head"} if together else set[str]()
    if len(subjects) > 1:
        common = set.intersection(*(figure_kinds(plan.subject) for plan in plans))
        kinds |= {_OVER_DRIVES_OF[kind] for kind in common & _OVER_DRIVES_OF.keys()}
        if basis in subjects:
            kinds.add("comparison")
    if len({canonical(_last_soak(plan.subject)) for plan in plans}) > 1:  # latencies of different workloads
        kinds.discard("drives_latency")
    if "head_to_head" in kinds:
        kinds.discard("drives_strip")
    return tuple(kind for kind in OVER_DRIVES if kind in kinds)


def tables_over_drives(figures: Iterable[str]) -> list[str]:
    """Return the tables that these figures need, and the table of exclusions."""
    kinds = [FIGURES[name] for name in figures]
    return [*dict.fromkeys(table for kind in kinds for table in (*kind.required, kind.values)), "exclusions"]


def _last_soak(subject: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the cell of the last soak outside a phase."""
    soaks = [step["soak"] for step in subject["measure"] if "soak" in step and "phase" not in step["soak"]]
    return soaks[-1]["cell"] if soaks else None


def measurements_by_size(plans: Iterable[Plan]) -> dict[str, tuple[str, ...]]:
    """Return the measurements of each protocol whose loops until steady state differ only in the block size.

    A protocol with `for_each` makes one measurement for each value, called NAME.VALUE; the keys are these names. A
    measurement with more than one block size rules out the figure.
    """
    sizes_of: dict[str, dict[str, set[int | None]]] = {}
    for plan in plans:
        name, dot, _ = plan.measurement.partition(".")
        if dot:
            sizes_of.setdefault(name, {}).setdefault(plan.measurement, set()).add(_only_size(plan))
    return {
        name: tuple(measurements)
        for name, measurements in sizes_of.items()
        if None not in (sizes := set().union(*measurements.values())) and len(sizes) == len(measurements) > 1
    }


def _only_size(plan: Plan) -> int | None:
    """Return the block size of a plan with a single loop until steady state, if all its cells have the same size."""
    (fields, *others) = plan.subject["measure"]
    loop = fields.get("loop")
    if others or loop is None or "track" not in loop["until"]:
        return None
    sizes = {cell.get("block_size_bytes") for cell in loop.get("cells", [])}
    ranged = any("block_sizes" in cell or "block_size_max_bytes" in cell for cell in loop.get("cells", []))
    return sizes.pop() if len(sizes) == 1 and not ranged else None
