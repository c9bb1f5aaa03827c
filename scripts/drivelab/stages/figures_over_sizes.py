"""Which measurements are of one protocol and differ in their block size, so that a figure shows them together."""

from __future__ import annotations

from collections.abc import Iterable

from drivelab.plan.plan import Plan


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
