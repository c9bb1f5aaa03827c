"""Describe how a recording was made, from its own files: programs, drive, host and times."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from drivelab.archive.contents import REQUIREMENTS, archived_name
from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan, canonical
from drivelab.plan.study import PARTS, Study
from drivelab.recording.folders import RUN_LOCK
from drivelab.recording.writer import UNFINISHED, read_journal

Entity = dict[str, Any]

_DRIVE = ("firmware", "capacity_bytes", "logical_block_bytes", "lba_format", "transport", "link", "controller",
          "manufacturer", "over_provisioning_pct", "write_cache", "virtual", "file_system", "mkfs",
          "mount_options")  # fmt: skip
_HOST = ("cpu", "cores", "base_clock_mhz", "max_clock_mhz", "package_power_limit_w", "memory_bytes", "memory_modules",
         "board", "system", "bios", "os", "note")  # fmt: skip
_FIO = "https://github.com/axboe/fio"
_LINUX = "https://www.kernel.org/"


@dataclass(frozen=True)
class Made:
    """A recording as the result of an action."""

    prefix: str
    """Folder of the recording in the archive, ending with a slash."""
    name: str
    protocol: str
    words: str
    started: str
    """ISO 8601, as `finished`; empty if nothing started."""
    finished: str
    fault: str | None
    """Reason why it is unfinished, or None."""
    traces: tuple[str, ...]
    """Paths as in the plan."""
    software: tuple[Entity, ...]
    things: tuple[Entity, ...]
    """The drive and the host, and the properties of each."""

    @property
    def entities(self) -> tuple[Entity, ...]:
        return (*self.software, *self.things)

    def action(self, inputs: Sequence[str]) -> Entity:
        """Return the CreateAction with its input files; it has no agent, because the user is not recorded."""
        objects = [*inputs, *(thing["@id"] for thing in self.things if thing["@type"] == "IndividualProduct")]
        ended = "FailedActionStatus" if self.fault else "CompletedActionStatus"
        times = {"startTime": self.started, "endTime": self.finished}
        return {
            "@id": f"#measurement/{quote(self.name, safe='/@')}",
            "@type": "CreateAction",
            "name": f"Measurement {self.name}",
            "description": self.words,
            **{key: value for key, value in times.items() if value},
            "instrument": [{"@id": program["@id"]} for program in self.software],
            "object": [{"@id": place} for place in objects],
            "result": {"@id": quote(self.prefix, safe="/@+,=!~")},
            "actionStatus": f"http://schema.org/{ended}",
            **({"error": self.fault} if self.fault else {}),
        }


def made(folder: Path, prefix: str) -> Made | None:
    """Return how the recording in a folder was made; None if its plan is unreadable or was edited."""
    try:
        plan = Plan.read(folder / "plan.json")
    except UserError:
        return None
    identity, host = _read(folder / "identity.json"), _read(folder / "host.json")
    journal = list(read_journal(folder))
    name = plan.recording + (suffix[0] if (suffix := UNFINISHED.search(folder.name)) else "")
    return Made(
        prefix,
        name,
        str(plan.subject["protocol"]),
        f"Protocol {plan.subject['protocol']} on drive {plan.drive}, run {plan.run}, plan {plan.digest}, "
        f"{plan.clock} clock, scenario {plan.subject['scenario']}. The job of each cell is its job.fio.",
        journal[0]["at"] if journal else "",
        journal[-1]["at"] if journal else "",
        _fault(journal),
        tuple(plan.context.get("trace_paths", ())),
        tuple(_software(host)),
        (*_thing("drive", str(identity.get("serial") or plan.drive), identity.get("model"), identity, _DRIVE),
         *_thing("host", str(host.get("host") or "unknown"), None, host, _HOST)),
    )  # fmt: skip


def _fault(journal: Sequence[dict[str, Any]]) -> str | None:
    events = {line["event"]: line for line in journal}
    if "complete" in events and "abandoned" not in events:
        return None
    return str(events["abandoned"]["reason"]) if "abandoned" in events else "interrupted and not yet resumed"


def _software(host: dict[str, Any]) -> list[Entity]:
    fio = str(host.get("fio") or "unknown")
    named = [("drivelab", host.get("drivelab"), None), ("Linux", host.get("kernel"), _LINUX)]
    if fio == "virtual clock":
        named.append(("drivelab's drive model, on the virtual clock", host.get("drivelab"), None))
    else:
        named.append(("fio", fio, _FIO))
    return [
        {
            "@id": f"#software-{quote(f'{name}-{version}', safe='')}",
            "@type": "SoftwareApplication",
            "name": name,
            "softwareVersion": str(version or "unknown"),
            **({"url": url} if url else {}),
        }
        for name, version, url in named
    ]


def _thing(kind: str, name: str, model: str | None, facts: dict[str, Any], keys: Sequence[str]) -> list[Entity]:
    """Return a drive or host with its properties; a change, such as new firmware, makes another entity."""
    known = {key: facts[key] for key in keys if facts.get(key) is not None}
    place = f"#{kind}-{quote(name, safe='')}-{hashlib.sha256(canonical([model, known]).encode()).hexdigest()[:8]}"
    values = [
        {"@id": f"{place}-{key}", "@type": "PropertyValue", "name": key, "value": _plain(value)}
        for key, value in known.items()
    ]
    product: Entity = {
        "@id": place,
        "@type": "IndividualProduct",
        "name": f"{model} {name}" if model else f"{kind} {name}",
        **({"additionalProperty": [{"@id": value["@id"]} for value in values]} if values else {}),
    }
    if kind == "drive":
        product |= {"serialNumber": name, **({"model": model} if model else {})}
    return [product, *values]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else canonical(value)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


_RESULTS = {
    "report/index.html": "The report: all results in one file for a browser",
    "report/pts-pages.pdf": "The report's pages for print",
    "study.txt": "Name of the study of these results",
    "concurrency.json": "Number of measurements that each host may run at a time",
    "looks.json": "The runs that a growing study has added, and why",
    "complete.txt": "Number of finished drives, written when the last one finished",
    RUN_LOCK: "Lock of the run; empty",
    "cells/": "A folder for each cell: fio's job, its JSON output, stdout, stderr, exit status and one-second logs",
    "condition/": "Jobs that conditioned the drive, a folder for each job",
    "tables/": "Numbers from the recordings, typed Parquet with units in the column names",
    "figures/": "Figures from the tables",
    "report/": "The report",
    "logs/": "Log of each job of the workflow",
    "benchmarks/": "Time and memory of each analysis job",
    "traces/": "Traces of block I/O recorded for the study",
    "virtual/": "State of virtual drives between two runs",
    "status/": "Progress of each drive during the run",
    "plans/": "Plans of unfinished recordings",
    "seals/": "State of the drives of unfinished recordings, by their write counters",
    f"{PARTS}/": "A folder for each drive",
}
"""Descriptions by name below a results folder; those of folders apply at any depth."""
_PART = re.compile(f"{PARTS}/([^/]+)/")


def words_of(name: str, study: Study) -> str:
    """Return the description of a file or folder (trailing slash); only its kind if no more is known."""
    path, results = PurePosixPath(name), archived_name(study.results) + "/"
    if name.startswith(results):
        return _of_results(name.removeprefix(results))
    known = {
        archived_name(study.path): "The study: its drives, measurements and criteria",
        archived_name(study.drives_sheet): "The drive sheet: the drives that may be measured, by serial number",
        "config/applications.yaml": "Applications for measurements",
        "config/virtual_drives.yaml": "Models of virtual drives",
        REQUIREMENTS: "Versions of all Python packages, with checksums",
        ".snakemake/metadata/": "Snakemake's records of how each output was made",
    }
    if name in known:
        return known[name]
    if path.parent == PurePosixPath("config/protocols"):
        return f"Protocol {path.stem}: conditioning of the drives and measured workloads"
    return f"Trace {path.stem}: {'its origin' if path.suffix == '.yaml' else 'its I/O'}"


def _of_results(name: str) -> str:
    if (part := _PART.match(name)) is not None:
        rest = name[part.end() :]
        words = _of_results(rest) if rest else "recordings, tables, figures, report and logs"
        return f"Drive {part[1]} alone: {words[:1].lower()}{words[1:]}"
    last = PurePosixPath(name).name
    if not name.endswith("/"):
        return _RESULTS.get(name, f"File {last} of the results")
    return _RESULTS.get(f"{last}/", f"Folder {last} of the results")
