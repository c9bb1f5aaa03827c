"""What RO-Crate 1.1 and Process Run Crate 0.5 ask of the metadata of a crate."""

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
"""Of the two contexts, as far as they are used."""


def graph_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Entities by @id."""
    body = json.loads((folder / "ro-crate-metadata.json").read_text(encoding="utf-8"))
    assert body.keys() == {"@context", "@graph"}
    assert body["@context"] == [
        "https://w3id.org/ro/crate/1.1/context",
        "https://w3id.org/ro/terms/workflow-run/context",
    ]
    found = {one["@id"]: one for one in body["@graph"]}
    assert len(found) == len(body["@graph"]), "an @id is there twice"
    return found


def listed(value: Any) -> list[Any]:
    """A single value stands alone, several in a list."""
    return value if isinstance(value, list) else [value]


def broken_rules(folder: Path) -> list[str]:
    """Rules that the crate in a folder breaks, in words."""
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
    for name, one in graph.items():
        yield from (f"{name}: a list of one in {key}" for key, value in one.items()
                    if isinstance(value, list) and len(value) < 2)  # fmt: skip
        yield from (f"{name}: term {term}" for term in one.keys() - _TERMS)
        yield from (f"{name}: nested, not flattened" for value in one.values() if not _flat(value))
        yield from (f"{name}: {ref} is not described" for ref in _references(one) if ref not in graph
                    and not ref.startswith("https://w3id.org/"))  # fmt: skip
        if one["@type"] in ("File", "Dataset") and name != "./":
            yield from _of_data(name, one, folder, linked)
        if one["@type"] == "CreateAction":
            yield from _of_action(name, one, graph)
    referenced = {ref for one in graph.values() for ref in _references(one)}
    yield from (f"{name}: nothing refers to it" for name in graph.keys() - referenced - {"ro-crate-metadata.json"})


def _of_data(name: str, one: dict[str, Any], folder: Path, linked: set[str]) -> Iterator[str]:
    path = folder / unquote(name)
    if urlsplit(name).scheme or re.search(r"[ <>\"{}|\\^`#?]", name):
        yield f"{name}: no relative path as a URI"
    if name not in linked:
        yield f"{name}: not part of the root"
    if one["@type"] == "File":
        if not path.is_file() or one["contentSize"] != str(path.stat().st_size):
            yield f"{name}: no file of that size"
        if not re.fullmatch("[0-9a-f]{64}", one["sha256"]) or "/" not in one["encodingFormat"]:
            yield f"{name}: sha256 and encodingFormat"
    elif not (path.is_dir() and name.endswith("/")):
        yield f"{name}: no folder"


def _of_action(name: str, one: dict[str, Any], graph: dict[str, dict[str, Any]]) -> Iterator[str]:
    if {"@id": name} not in listed(graph["./"]["mentions"]):
        yield f"{name}: the root does not mention it"
    if not one["instrument"] or any(graph[ref["@id"]]["@type"] not in _SOFTWARE for ref in listed(one["instrument"])):
        yield f"{name}: instrument is no software"
    yield from (f"{name}: {key}" for key in ("startTime", "endTime") if not _TIME.fullmatch(one[key]))
    yield from (f"{name}: {key}" for key in ("name", "description", "result") if not one[key])
    failed = one["actionStatus"] == "http://schema.org/FailedActionStatus"
    if not failed and one["actionStatus"] != "http://schema.org/CompletedActionStatus":
        yield f"{name}: actionStatus"
    if failed != ("error" in one):
        yield f"{name}: error"


def _parts(graph: dict[str, dict[str, Any]], name: str) -> Iterator[str]:
    for ref in listed(graph[name].get("hasPart", [])):
        yield ref["@id"]
        yield from _parts(graph, ref["@id"])


def _references(one: dict[str, Any]) -> list[str]:
    return [item["@id"] for value in one.values() for item in listed(value) if isinstance(item, dict)]


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
    yield from (f"preview: {key} is no word" for key in set(re.findall(r">(\w+_(?:bytes|pct))<", visible)))
    yield from (f"preview: {at} is not for people" for at in re.findall(r">[^<]*T\d\d:\d\d:\d\d\.\d+[^<]*<", visible))
    if json.loads(page.data) != json.loads((folder / "ro-crate-metadata.json").read_text(encoding="utf-8")):
        yield "preview: has no copy of the metadata in its head"
    for link in page.links:
        if link.startswith("#"):
            if unquote(link[1:]) not in page.places:
                yield f"preview: {link} leads nowhere"
        elif not urlsplit(link).scheme and not (folder / unquote(link)).exists():
            yield f"preview: {link} is not there"


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
