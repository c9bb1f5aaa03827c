"""Which kinds of figures over several drives a measurement leads to, told by the plans of all its drives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drivelab.figures.registry import FIGURES
from drivelab.plan.plan import Plan, canonical
from drivelab.workflow.figure_kinds import FIGURES_OF, OVER_DRIVES, figure_kinds

OF_THE_STUDY = ("deltas", "summary", "drives", "exclusions")
"""Tables that a study has one of; of the others there is one for each recording."""

_WHERE_ALL_HAVE = {
    "histogram": "drives_latency",
    "nines": "drives_latency",
    "demand": "drives_ramp",
    "mixes": "drives_mixes",
    "shifted": "drives_alignment",
    "soak": "drives_strip",
    "stimulus": "drives_strip",
    "application": "drives_application",
}
"""Kind over several drives, by the kind that the recording of each has."""


def kinds_over_drives(plans: Sequence[Plan], basis: str) -> tuple[str, ...]:
    """Those of OVER_DRIVES that the recordings of one measurement lead to; `basis` is what deltas are against.

    A figure over several drives has to suit each of them. Drives that were measured at the same time are on one clock,
    the others are laid on each other from their starts.
    """
    subjects = {plan.drive for plan in plans}
    found = {"head_to_head"} if any("simultaneous" in plan.subject for plan in plans) else set[str]()
    if len(subjects) > 1:
        of_each = set.intersection(*(figure_kinds(plan.subject) for plan in plans))
        found |= {_WHERE_ALL_HAVE[kind] for kind in of_each & _WHERE_ALL_HAVE.keys()}
        if basis in subjects:
            found.add("comparison")
            if len({_capacity(plan) for plan in plans}) > 1:
                found.add("drives_capacity")
    if len({canonical(_last_soak(plan.subject)) for plan in plans}) > 1:  # latencies of different workloads
        found.discard("drives_latency")
    if "head_to_head" in found:
        found.discard("drives_strip")
    return tuple(kind for kind in OVER_DRIVES if kind in found)


def tables_over_drives(kinds: Iterable[str]) -> list[str]:
    """Tables that the figures of these kinds are drawn and labelled from, and what is left out of them."""
    drawn = [FIGURES[name] for kind in kinds for name in FIGURES_OF[kind]]
    return [*dict.fromkeys(table for one in drawn for table in (*one.required, one.values)), "exclusions"]


def _capacity(plan: Plan) -> str:
    """Of a virtual drive its capacity; a real one tells it only when it is measured, so each may have its own."""
    virtual = plan.subject["drive"].get("virtual")
    return plan.sheet_drive if virtual is None else str(virtual["capacity"])


def _last_soak(subject: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The cell of the last soak that is in no phase."""
    soaks = [step["soak"] for step in subject["measure"] if "soak" in step and "phase" not in step["soak"]]
    return soaks[-1]["cell"] if soaks else None


def measurements_by_size(plans: Iterable[Plan]) -> dict[str, tuple[str, ...]]:
    """Name of a choice of the study, and its measurements if they differ in the block size of loops until steady state.

    A protocol makes one measurement for each value of `for_each`, called NAME.VALUE. Where one of them asks for
    something else than a single size there is no figure over them.
    """
    found: dict[str, dict[str, set[int | None]]] = {}
    for plan in plans:
        name, dot, _ = plan.measurement.partition(".")
        if dot:
            found.setdefault(name, {}).setdefault(plan.measurement, set()).add(_only_size(plan))
    return {
        name: tuple(of_each)
        for name, of_each in found.items()
        if None not in (sizes := set().union(*of_each.values())) and len(sizes) == len(of_each) > 1
    }


def _only_size(plan: Plan) -> int | None:
    """Block size of the one loop there is, if it looks for steady state and all its cells share a single size."""
    (fields, *others) = plan.subject["measure"]
    loop = fields.get("loop")
    if others or loop is None or "track" not in loop["until"]:
        return None
    sizes = {cell.get("block_size_bytes") for cell in loop.get("cells", [])}
    ranged = any("block_sizes" in cell or "block_size_max_bytes" in cell for cell in loop.get("cells", []))
    (size,) = sizes if len(sizes) == 1 and not ranged else (None,)
    return size
