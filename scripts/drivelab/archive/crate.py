"""Write the metadata of an archive as RO-Crate 1.1 with the profile Process Run Crate 0.5, in JSON-LD.

https://www.researchobject.org/ro-crate/specification/1.1/ and https://w3id.org/ro/wfrun/process/0.5. A recording is
the result of a CreateAction. Its instruments are the programs that ran; its objects are the plan, the drive, the host
and the traces. RO-Crate does not require an entity for every file: folders of cells, figures and logs have one entity
each, because the metadata of a large study would otherwise be too large to open. SHA256SUMS lists all files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import drivelab
from drivelab.archive.contents import RECORDS, Item, archived_name
from drivelab.archive.crate_entries import Made, made, words_of
from drivelab.archive.preview import Publication
from drivelab.plan.study import PARTS, Study

METADATA = "ro-crate-metadata.json"
PREVIEW = "ro-crate-preview.html"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
CONTEXT = [f"{SPECIFICATION}/context", "https://w3id.org/ro/terms/workflow-run/context"]
"""The second context defines the term sha256."""
Entity = dict[str, Any]

_FORMATS = {
    ".json": "application/json", ".jsonl": "application/jsonl", ".parquet": "application/vnd.apache.parquet",
    ".yaml": "application/yaml", ".tsv": "text/tab-separated-values", ".html": "text/html", ".pdf": "application/pdf",
    ".svg": "image/svg+xml", ".png": "image/png", ".txt": "text/plain", ".log": "text/plain", ".csv": "text/csv",
    "": "text/plain",
}  # fmt: skip
_DERIVED = ("tables", "figures", "report")
_MOST_NAMED = 12
_PART = re.compile(f"{PARTS}/[^/]+/")


def crate(
    study: Study,
    items: Sequence[Item],
    digests: Mapping[str, str],
    sizes_bytes: Mapping[str, int],
    publication: Publication,
) -> str:
    """Return the text of METADATA; `digests` (SHA-256) and `sizes_bytes` are by name of the item."""
    folders = {item.name.removesuffix("plan.json"): item.path.parent for item in items if _is_plan(item)}
    recordings = {
        prefix: recording for prefix, path in folders.items() if (recording := made(path, prefix)) is not None
    }
    results = archived_name(study.results) + "/"
    parts: dict[str, dict[str, None]] = {"./": {}}
    described: dict[str, Entity] = {}
    for item in items:
        chain = _chain(item.name, recordings, results)
        for parent, child in zip(("./", *chain), chain, strict=False):
            parts.setdefault(parent, {})[child] = None
            if child not in described:
                described[child] = (
                    _folder(child, study, recordings)
                    if child.endswith("/")
                    else _file(item.name, digests[item.name], sizes_bytes[item.name])
                )
                if chain[0] not in recordings:
                    described[child]["description"] = words_of(child, study)
    for name, children in parts.items():
        if name != "./":
            described[name]["hasPart"] = _references(map(_place, children))
    for name in _DERIVED:
        if (entity := described.get(f"{results}{name}/")) is not None:
            entity["isBasedOn"] = _references(map(_place, recordings))
    contextual = {entity["@id"]: entity for recording in recordings.values() for entity in recording.entities}
    actions = [recording.action(_inputs(recording, study, described)) for recording in recordings.values()]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": study.title,
        "description": _description(study, len(recordings)),
        "datePublished": publication.published or _latest(recordings),
        **publication.properties,
        "conformsTo": {"@id": PROFILE},
        "hasPart": _references(map(_place, parts["./"])),
        "mentions": _references(action["@id"] for action in actions),
    }
    about = {"@id": METADATA, "@type": "CreativeWork", "conformsTo": {"@id": SPECIFICATION}, "about": {"@id": "./"},
             "description": f"Written by drivelab {drivelab.__version__}"}  # fmt: skip
    profile = {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    rest = [*described.values(), *contextual.values(), *actions]
    graph = [about, root, profile, *publication.entities, *sorted(rest, key=lambda entity: str(entity["@id"]))]
    body = {"@context": CONTEXT, "@graph": [_compacted(entity) for entity in graph]}
    return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _description(study: Study, recordings: int) -> str:
    named = ", ".join(study.subjects) if len(study.subjects) <= _MOST_NAMED else f"{len(study.subjects)} drives"
    protocols = list(dict.fromkeys(measurement.protocol for measurement in study.measurements))
    return (
        f"Measurements of {named} by {recordings} recording{'s' * (recordings != 1)} of the protocol"
        f"{'s' * (len(protocols) > 1)} {', '.join(protocols)}: raw evidence, tables and report"
    )


def _latest(recordings: Mapping[str, Made]) -> str:
    """Return the date on which the last recording finished."""
    return max((recording.finished for recording in recordings.values()), default="")[:10]


def _is_plan(item: Item) -> bool:
    """Whether the item is the plan of a recording, finished or not: recordings/DRIVE/MEASUREMENT/KEY/plan.json."""
    parts = item.path.parts
    return len(parts) >= 5 and parts[-1] == "plan.json" and parts[-5] == "recordings"


def _chain(name: str, recordings: Mapping[str, Made], results: str) -> list[str]:
    """Return the names of the entities above a file, outermost first; the last is the file's or its folder's."""
    prefix = next((folder for folder in _above(name) if folder in recordings), None)
    if prefix is not None:
        first, slash, _ = name.removeprefix(prefix).partition("/")
        return [prefix, f"{prefix}{first}{slash}"]
    if name.startswith(RECORDS):
        return [f"{RECORDS}/"]
    below = name.removeprefix(results)
    if (drive := _PART.match(below)) is not None:  # of a fleet's many drives, list only the reports
        part = f"{results}{drive[0]}"
        return [part, name] if below.startswith(f"{drive[0]}report/") else [part]
    top, slash, rest = below.partition("/")
    if below == name or not slash:
        return [name]
    return [f"{results}{top}/"] if "/" in rest or top not in _DERIVED else [f"{results}{top}/", name]


def _above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:end]) + "/" for end in range(1, len(parts))]


def _file(name: str, digest: str, size_bytes: int) -> Entity:
    path = PurePosixPath(name)
    return {
        "@id": _place(name),
        "@type": "File",
        "name": path.name,
        "contentSize": str(size_bytes),
        "encodingFormat": _FORMATS.get(path.suffix, "application/octet-stream"),
        "sha256": digest,
    }


def _folder(name: str, study: Study, recordings: Mapping[str, Made]) -> Entity:
    entity: Entity = {"@id": _place(name), "@type": "Dataset", "name": PurePosixPath(name).name}
    if name in recordings:
        return {**entity, "name": recordings[name].name, "description": recordings[name].words}
    return {**entity, "description": words_of(name, study)}


def _inputs(recording: Made, study: Study, described: Mapping[str, Entity]) -> list[str]:
    """Return the input files of a recording that have an entity."""
    traces = (archived_name(Path(trace)) for trace in recording.traces)
    inputs = [f"{recording.prefix}plan.json", archived_name(study.path), archived_name(study.drives_sheet),
              f"config/protocols/{recording.protocol}.yaml", *traces]  # fmt: skip
    return [_place(name) for name in inputs if name in described]


def _place(name: str) -> str:
    """Return a path as a URI reference (RO-Crate 1.1, Encoding file paths)."""
    return quote(name, safe="/@+,=!~") if name != "./" else name


def _compacted(entity: Entity) -> Entity:
    """Replace lists of one value by the value, as compacted JSON-LD requires (RO-Crate 1.1, RO-Crate JSON-LD)."""
    return {key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in entity.items()}


def _references(places: Any) -> list[dict[str, str]]:
    return [{"@id": place} for place in places]
