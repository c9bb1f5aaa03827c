"""The metadata of an archive as RO-Crate 1.1 with the profile Process Run Crate 0.5: JSON-LD about files and how they
came to be.

https://www.researchobject.org/ro-crate/specification/1.1/ and https://w3id.org/ro/wfrun/process/0.5. A recording is
the result of a CreateAction; its instruments are the programs that ran, its objects the plan, the drive, the host and
the traces. Not every file has an entity, which RO-Crate does not ask for: folders of cells, figures and logs are
described as a whole, or the metadata of a large study could not be opened. SHA256SUMS has all files.
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
from drivelab.archive.described import words_of
from drivelab.archive.made import Made, made
from drivelab.archive.publication import Publication
from drivelab.config.study import PARTS, Study

METADATA = "ro-crate-metadata.json"
PREVIEW = "ro-crate-preview.html"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
CONTEXT = [f"{SPECIFICATION}/context", "https://w3id.org/ro/terms/workflow-run/context"]
"""The second one has the term sha256."""
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
    """The text of METADATA; `digests` are SHA-256 by name of an item, `sizes_bytes` its size."""
    folders = {item.name.removesuffix("plan.json"): item.path.parent for item in items if _is_plan(item)}
    recordings = {prefix: of for prefix, path in folders.items() if (of := made(path, prefix)) is not None}
    results = archived_name(study.results) + "/"
    parts: dict[str, dict[str, None]] = {"./": {}}
    described: dict[str, Entity] = {}
    for item in items:
        chain = _chain(item.name, recordings, results)
        for above, below in zip(("./", *chain), chain, strict=False):
            parts.setdefault(above, {})[below] = None
            if below not in described:
                described[below] = (
                    _folder(below, study, recordings)
                    if below.endswith("/")
                    else _file(item.name, digests[item.name], sizes_bytes[item.name])
                )
                if chain[0] not in recordings:
                    described[below]["description"] = words_of(below, study)
    for name, own in parts.items():
        if name != "./":
            described[name]["hasPart"] = _references(map(_place, own))
    for name in _DERIVED:
        if (one := described.get(f"{results}{name}/")) is not None:
            one["isBasedOn"] = _references(map(_place, recordings))
    contextual = {one["@id"]: one for of in recordings.values() for one in of.entities}
    actions = [of.action(_inputs(of, study, described)) for of in recordings.values()]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": study.title,
        "description": _words(study, len(recordings)),
        "datePublished": publication.published or _latest(recordings),
        **publication.properties,
        "conformsTo": {"@id": PROFILE},
        "hasPart": _references(map(_place, parts["./"])),
        "mentions": _references(one["@id"] for one in actions),
    }
    about = {"@id": METADATA, "@type": "CreativeWork", "conformsTo": {"@id": SPECIFICATION}, "about": {"@id": "./"},
             "description": f"Written by drivelab {drivelab.__version__}"}  # fmt: skip
    profile = {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}
    rest = [*described.values(), *contextual.values(), *actions]
    graph = [about, root, profile, *publication.entities, *sorted(rest, key=lambda one: str(one["@id"]))]
    body = {"@context": CONTEXT, "@graph": [_compacted(one) for one in graph]}
    return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _words(study: Study, recordings: int) -> str:
    named = ", ".join(study.subjects) if len(study.subjects) <= _MOST_NAMED else f"{len(study.subjects)} drives"
    protocols = list(dict.fromkeys(one.protocol for one in study.measurements))
    return (
        f"Measurements of {named} by {recordings} recording{'s' * (recordings != 1)} of the protocol"
        f"{'s' * (len(protocols) > 1)} {', '.join(protocols)}: raw evidence, tables and report"
    )


def _latest(recordings: Mapping[str, Made]) -> str:
    """Date on which the last recording was finished."""
    return max((of.finished for of in recordings.values()), default="")[:10]


def _is_plan(item: Item) -> bool:
    """Whether it is the plan of a recording, finished or not: recordings/DRIVE/MEASUREMENT/KEY/plan.json."""
    parts = item.path.parts
    return len(parts) >= 5 and parts[-1] == "plan.json" and parts[-5] == "recordings"


def _chain(name: str, recordings: Mapping[str, Made], results: str) -> list[str]:
    """Names of the entities that lead to a file, from the outermost; the last one is its own or its folder's."""
    prefix = next((one for one in _above(name) if one in recordings), None)
    if prefix is not None:
        first, slash, _ = name.removeprefix(prefix).partition("/")
        return [prefix, f"{prefix}{first}{slash}"]
    if name.startswith(RECORDS):
        return [f"{RECORDS}/"]
    below = name.removeprefix(results)
    if (drive := _PART.match(below)) is not None:  # a drive of a fleet, which may have a thousand: its report alone
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
    one: Entity = {"@id": _place(name), "@type": "Dataset", "name": PurePosixPath(name).name}
    if name in recordings:
        return {**one, "name": recordings[name].name, "description": recordings[name].words}
    return {**one, "description": words_of(name, study)}


def _inputs(of: Made, study: Study, described: Mapping[str, Entity]) -> list[str]:
    """Files that a recording was made by, as far as they have an entity."""
    own = [f"{of.prefix}plan.json", archived_name(study.path), archived_name(study.drives_sheet),
           f"config/protocols/{of.protocol}.yaml", *(archived_name(Path(one)) for one in of.traces)]  # fmt: skip
    return [_place(name) for name in own if name in described]


def _place(name: str) -> str:
    """A path as a URI reference (RO-Crate 1.1, Encoding file paths)."""
    return quote(name, safe="/@+,=!~") if name != "./" else name


def _compacted(one: Entity) -> Entity:
    """Without lists of a single value, as JSON-LD in compacted form has none (RO-Crate 1.1, RO-Crate JSON-LD)."""
    return {key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in one.items()}


def _references(places: Any) -> list[dict[str, str]]:
    return [{"@id": one} for one in places]
