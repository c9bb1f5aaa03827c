"""Check the metadata of a crate against RO-Crate 1.1 and Process Run Crate 0.5."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?\+\d{2}:\d{2}")
_SOFTWARE = {"SoftwareApplication", "SoftwareSourceCode", "ComputationalWorkflow"}
_TERMS = {
    "@id", "@type", "about", "actionStatus", "additionalProperty", "author", "conformsTo", "contentSize",
    "datePublished", "description", "encodingFormat", "endTime", "error", "hasPart", "instrument", "isBasedOn",
    "license", "mentions", "model", "name", "object", "result", "serialNumber", "sha256", "softwareVersion",
    "startTime", "url", "value", "version",
}  # fmt: skip
"""The used terms of the two contexts."""


def graph_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entities by @id."""
    body = json.loads((folder / "ro-crate-metadata.json").read_text(encoding="utf-8"))
    assert body.keys() == {"@context", "@graph"}
    assert body["@context"] == [
        "https://w3id.org/ro/crate/1.1/context",
        "https://w3id.org/ro/terms/workflow-run/context",
    ]
    graph = {entity["@id"]: entity for entity in body["@graph"]}
    assert len(graph) == len(body["@graph"]), "an @id is repeated"
    return graph


def listed(value: Any) -> list[Any]:
    """Return a value as a list: a single value is not in a list."""
    return value if isinstance(value, list) else [value]


def broken_rules(folder: Path) -> list[str]:
    """Return descriptions of the rules that the crate in a folder breaks."""
    return [*_of_graph(graph_of(folder), folder), *_of_preview(folder)]


def _of_graph(graph: dict[str, dict[str, Any]], folder: Path) -> Iterator[str]:
    about, root = graph["ro-crate-metadata.json"], graph["./"]
    if about["@type"] != "CreativeWork" or about["about"] != {"@id": "./"}:
        yield "metadata descriptor: type and about"
    if about["conformsTo"] != {"@id": "https://w3id.org/ro/crate/1.1"}:
        yield "metadata descriptor: conformsTo"
    if root["@type"] != "Dataset" or root["conformsTo"] != {"@id": "https://w3id.org/ro/wfrun/process/0.5"}:
        yield "root: type and profile"
    for name in ("name", "description", "datePublished", "license"):
        if not root.get(name):
            yield f"root: {name}"
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", root["datePublished"]):
        yield "root: datePublished"
    yield from (f"{ref['@id']}: is not described" for ref in listed(root["hasPart"])
                if not graph[ref["@id"]].get("description"))  # fmt: skip
    linked = set(_parts(graph, "./"))
    for name, entity in graph.items():
        yield from (f"{name}: a list of one value in {key}" for key, value in entity.items()
                    if isinstance(value, list) and len(value) < 2)  # fmt: skip
        yield from (f"{name}: term {term}" for term in entity.keys() - _TERMS)
        yield from (f"{name}: nested, not flattened" for value in entity.values() if not _flat(value))
        yield from (f"{name}: {ref} is not described" for ref in _references(entity) if ref not in graph
                    and not ref.startswith("https://w3id.org/"))  # fmt: skip
        if entity["@type"] in ("File", "Dataset") and name != "./":
            yield from _of_data(name, entity, folder, linked)
        if entity["@type"] == "CreateAction":
            yield from _of_action(name, entity, graph)
    referenced = {ref for entity in graph.values() for ref in _references(entity)}
    yield from (f"{name}: nothing refers to it" for name in graph.keys() - referenced - {"ro-crate-metadata.json"})


def _of_data(name: str, entity: dict[str, Any], folder: Path, linked: set[str]) -> Iterator[str]:
    path = folder / unquote(name)
    if urlsplit(name).scheme or re.search(r"[ <>\"{}|\\^`#?]", name):
        yield f"{name}: not a relative path as a URI"
    if name not in linked:
        yield f"{name}: not part of the root"
    if entity["@type"] == "File":
        if not path.is_file() or entity["contentSize"] != str(path.stat().st_size):
            yield f"{name}: missing, or of another size"
        if not re.fullmatch("[0-9a-f]{64}", entity["sha256"]) or "/" not in entity["encodingFormat"]:
            yield f"{name}: sha256 and encodingFormat"
    elif not (path.is_dir() and name.endswith("/")):
        yield f"{name}: not a folder"


def _of_action(name: str, action: dict[str, Any], graph: dict[str, dict[str, Any]]) -> Iterator[str]:
    if {"@id": name} not in listed(graph["./"]["mentions"]):
        yield f"{name}: the root does not mention it"
    if not action["instrument"] or any(
        graph[ref["@id"]]["@type"] not in _SOFTWARE for ref in listed(action["instrument"])
    ):
        yield f"{name}: instrument is not software"
    yield from (f"{name}: {key}" for key in ("startTime", "endTime") if not _TIME.fullmatch(action[key]))
    yield from (f"{name}: {key}" for key in ("name", "description", "result") if not action[key])
    failed = action["actionStatus"] == "http://schema.org/FailedActionStatus"
    if not failed and action["actionStatus"] != "http://schema.org/CompletedActionStatus":
        yield f"{name}: actionStatus"
    if failed != ("error" in action):
        yield f"{name}: error"


def _parts(graph: dict[str, dict[str, Any]], name: str) -> Iterator[str]:
    for ref in listed(graph[name].get("hasPart", [])):
        yield ref["@id"]
        yield from _parts(graph, ref["@id"])


def _references(entity: dict[str, Any]) -> list[str]:
    return [item["@id"] for value in entity.values() for item in listed(value) if isinstance(item, dict)]


def _flat(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_flat, value))
    return value.keys() == {"@id"} if isinstance(value, dict) else isinstance(value, str | int | float)


def _of_preview(folder: Path) -> Iterator[str]:
    page, text = _Page(), (folder / "ro-crate-preview.html").read_text(encoding="utf-8")
    page.feed(text)
    if '<meta name="viewport" content="width=device-width' not in text or "prefers-color-scheme: dark" not in text:
        yield "preview: not for phones, or not for dark screens"
    yield from (
        f"preview: {link} is not described"
        for link in re.findall(r'<td><a href="([^"]+)">[^<]*</a></td><td></td>', text)
    )
    yield from (f"preview: {link} is a lock" for link in page.links if link.endswith(".lock"))
    visible = text.partition("<header>")[2]
    yield from (f"preview: {key} is an internal name" for key in set(re.findall(r">(\w+_(?:bytes|pct))<", visible)))
    yield from (
        f"preview: {at} is an unformatted time" for at in re.findall(r">[^<]*T\d\d:\d\d:\d\d\.\d+[^<]*<", visible)
    )
    if json.loads(page.data) != json.loads((folder / "ro-crate-metadata.json").read_text(encoding="utf-8")):
        yield "preview: has no copy of the metadata in its head"
    for link in page.links:
        if link.startswith("#"):
            if unquote(link[1:]) not in page.places:
                yield f"preview: {link} has no target"
        elif not urlsplit(link).scheme and not (folder / unquote(link)).exists():
            yield f"preview: {link} does not exist"


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.data, self.links, self.places = "", [], set()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        self._open = [*self._open, tag] if tag in ("head", "script") else self._open
        self.links += [known["href"]] if tag == "a" and known.get("href") else []
        self.places |= {known["id"]} if known.get("id") else set()

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open = self._open[:-1]

    def handle_data(self, data: str) -> None:
        if self._open == ["head", "script"]:
            self.data += data
