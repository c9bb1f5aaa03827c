"""The drive for which a protocol is described: from the sheet, or imagined."""

from __future__ import annotations

import re
from pathlib import Path

from drivelab.config.drives_sheet import load_sheet
from drivelab.config.schema import ROOT
from drivelab.config.yaml_file import load_yaml
from drivelab.drives import identity, sysfs
from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.stages.ceilings import fastest_mib_s
from drivelab.stages.estimate import Trace, assumed_mib_s
from drivelab.stages.planning import TRACES, VIRTUAL_DRIVES, model_among
from drivelab.stages.procedure import Subject
from drivelab.trace import catalogue
from drivelab.units import format_amount, parse_size

SHEET = Path("config/drives.tsv")
OVER_PROVISIONING = 0.07
"""Assumed if the drive is imagined or the sheet has no value: 2^30 bytes of flash for 10^9 of capacity."""
_DECIMAL = re.compile(r"(\d+(?:\.\d+)?)(G|T)B")


def imagined(capacity: str, write_mib_s: float, traces: tuple[Trace, ...] = ()) -> tuple[str, Subject]:
    """Return description and figures of a drive with a capacity such as `1TB` (10^12 bytes) or `512GiB`.

    Raises UserError for an invalid capacity.
    """
    if (match := _DECIMAL.fullmatch(capacity)) is not None:
        capacity_bytes = int(float(match[1]) * {"G": 10**9, "T": 10**12}[match[2]])
    else:
        capacity_bytes = parse_size(capacity)
    if not capacity_bytes:
        raise UserError(f"a drive of {capacity} has no capacity; give a capacity such as 1TB")
    words = f"a drive of {capacity} that writes {write_mib_s:g} MiB/s, with {OVER_PROVISIONING:.0%} over-provisioning"
    return words, Subject(f"of {capacity}", capacity_bytes, write_mib_s, OVER_PROVISIONING, traces)


def of_sheet(name: str, traces: tuple[Trace, ...] = ()) -> tuple[str, Subject]:
    """Return description and figures of a drive in config/drives.tsv.

    Raises UserError for an unknown drive, or one that is not attached.
    """
    rows = load_sheet(ROOT / SHEET)
    if name not in rows:
        raise UserError(f"{SHEET}: has no drive '{name}'; the drives are: {', '.join(rows) or 'none'}")
    row = rows[name]
    over_provisioning = OVER_PROVISIONING if row.over_provisioning is None else row.over_provisioning
    if row.virtual is not None:
        model = model_among(load_yaml(ROOT / VIRTUAL_DRIVES), row.virtual, row.source)
        plan = Plan({"drive": {"virtual": model.to_mapping()}}, {"drive": name})
        capacity_bytes, over_provisioning = model.capacity_bytes, model.over_provisioning
        transport = link = None
        logical_block_bytes = model.logical_block_bytes
    else:
        kernel_name = sysfs.kernel_name(row.device)
        try:
            capacity_bytes = sysfs.capacity_bytes(kernel_name)
        except OSError:
            raise UserError(f"drive '{name}' is not attached: there is no {row.device}; attach it") from None
        logical_block_bytes = sysfs.logical_block_bytes(kernel_name)
        facts = identity.describe(kernel_name)
        transport, link = str(facts["transport"]), str(facts["link"])
        plan = Plan({"drive": {}}, {"drive": name})
    write_mib_s = assumed_mib_s(plan, transport)
    words = f"{name}, {format_amount(capacity_bytes)}, at an assumed {write_mib_s:.0f} MiB/s"
    return words, Subject(
        name, capacity_bytes, write_mib_s, over_provisioning, traces, logical_block_bytes,
        fastest_mib_s(plan, transport, link), plan.subject["drive"].get("virtual"),
    )  # fmt: skip


def trace(name: str) -> Trace:
    """Return the extent of a trace: a `.parquet` file, or a name in the catalogue."""
    from drivelab.trace.extent import extent  # imports pyarrow, which is slow; only replays need it

    path = Path(name) if name.endswith(".parquet") else catalogue.path_of(name, ROOT / TRACES)
    return Trace(*extent(path))
