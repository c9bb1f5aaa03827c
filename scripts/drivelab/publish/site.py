"""Publish archives as a static site, one archive in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import drivelab
from drivelab.core.errors import UserError
from drivelab.core.units import counted
from drivelab.criteria.repeats import FEWEST
from drivelab.publish import FORMAT
from drivelab.publish.files import INDEX, Site, encoded
from drivelab.publish.model_page import model_page
from drivelab.publish.pages import index_page
from drivelab.publish.pairs import MOST_CANDIDATES, MOST_OF_SITE, Block, Verdicts, compare_page, judged_pairs, verdicts
from drivelab.publish.reading import digest_of, read_archive
from drivelab.publish.record import Record, display_name, record_of, text

TITLE = "Drive measurements"
_OF_KEY = ("words", "cell_label", "metric", "metric_words", "unit", "unit_words", "kind", "value", "spread_low",
           "spread_high", "fault")  # fmt: skip
_OF_ENTRY = ("id", "results", "drive", "serial", "firmware", "measurement", "protocol", "date", "group", "labels")


@dataclass(frozen=True)
class Outcome:
    """What a run did: numbers of studies."""

    new: int
    kept: int
    removed: int
    models: int


def publish(
    archives: Sequence[Path], folder: Path, title: str = TITLE, watch: Callable[[Path], None] = lambda path: None
) -> Outcome:
    """Write the site of some archives; `watch` is called before each archive.

    An archive that is already in the site, by its SHA-256, is not read again. The site depends on the set of archives
    only, not on their order, names or on what the site held before. Raises UserError for an archive that is altered,
    unreadable or dangerous; then the pages stay as they were. Raises it also while another run writes the site.
    """
    site = Site(folder)
    with site.held():
        return _publish(site, archives, text(title), watch)


def _publish(site: Site, archives: Sequence[Path], title: str, watch: Callable[[Path], None]) -> Outcome:
    digests: set[str] = set()
    new = 0
    for path in archives:
        watch(path)
        if path.is_dir():
            raise UserError(f"{path}: is a folder. Name archives, the files that 'drivelab archive create' writes.")
        digest = digest_of(path)
        if digest not in digests and not site.has_study(digest):
            archived = read_archive(path)
            if archived.digest != digest:
                raise UserError(f"{path}: changed while it was read. Publish it again.")
            site.write_study(record_of(archived), archived.report)
            new += 1
        digests.add(digest)
    studies, entries, groups = _catalogue(site, sorted(digests))
    models = {entry["model"]["id"]: entry["model"] for entry in entries}
    for model in sorted(models):
        of_model = [entry for entry in entries if entry["model"]["id"] == model]
        site.write(f"models/{model}.html", model_page(title, _full(site, of_model), groups).encode())
    blocks = _blocks(site, entries, groups)
    site.write("compare.html", (part.encode() for part in compare_page(title, entries, groups, blocks)))
    site.write("index.html", index_page(title, studies, entries, groups).encode())
    index = {
        "generator": "drivelab publish", "drivelab": drivelab.__version__, "format": FORMAT, "title": title,
        "studies": studies, "models": [{**models[name], "page": f"models/{name}.html"} for name in sorted(models)],
        "groups": groups, "entries": entries,
    }  # fmt: skip
    site.write(INDEX, encoded({**index, "entries": [{**entry, "model": entry["model"]["id"]} for entry in entries]}))
    removed = site.remove_others(digests, {f"{name}.html" for name in models})
    return Outcome(new, len(digests) - new, removed, len(models))


def summary_line(folder: Path, outcome: Outcome) -> str:
    """Say what a run did."""
    total = outcome.new + outcome.kept
    studies = "1 study" if total == 1 else f"{total} studies"
    return (
        f"{folder}/index.html: {studies} of {counted(outcome.models, 'drive model')} "
        f"({outcome.new} new, {outcome.kept} unchanged, {outcome.removed} removed)"
    )


def _catalogue(site: Site, digests: Sequence[str]) -> tuple[list[Record], list[Record], dict[str, dict[str, str]]]:
    """Return studies, entries without their values, and the facets of each group; one record in memory at a time."""
    studies, entries, groups = [], [], {}
    for digest in digests:
        record = site.record(digest)
        place = f"studies/{digest}"
        studies.append(
            {**record["study"], **record["archive"], "record": f"{place}/study.json",
             "report": f"{place}/{record['report']}" if record["report"] else None,
             "without_report": record["without_report"],
             "models": sorted({entry["model"]["id"] for entry in record["entries"]}),
             "protocols": sorted({entry["protocol"] for entry in record["entries"]}),
             "entries": len(record["entries"]),
             "recordings": sum(len(entry["recordings"]) for entry in record["entries"])}
        )  # fmt: skip
        for entry in record["entries"]:
            groups[entry["group"]] = entry["facets"]
            key = entry["values"][entry["key"]]
            entries.append(
                {**{name: entry[name] for name in _OF_ENTRY}, "model": entry["model"], "study": digest,
                 "name": display_name(entry, record), "recordings": len(entry["recordings"]),
                 "values": len(entry["values"]), "key": {name: key[name] for name in _OF_KEY}}
            )  # fmt: skip
    entries.sort(key=lambda entry: (entry["protocol"], entry["date"], entry["drive"], entry["id"]))
    return studies, entries, dict(sorted(groups.items()))


def _full(site: Site, entries: Sequence[Record]) -> Iterator[Record]:
    """Yield the entries with their values, by study; one record is in memory at a time."""
    wanted = {entry["id"] for entry in entries}
    for digest in sorted({entry["study"] for entry in entries}):
        record = site.record(digest)
        for entry in record["entries"]:
            if entry["id"] in wanted:
                yield {**entry, "name": display_name(entry, record), "study": record["study"], "sha256": digest,
                       "report": record["report"], "kinds": record["kinds"]}  # fmt: skip


def _blocks(site: Site, entries: Sequence[Record], groups: Mapping[str, Any]) -> Iterator[tuple[str, Record]]:
    """Yield for each group the data of its comparisons; the groups share the limit of judged pairs.

    Verdicts of an earlier run are kept in the site: a verdict depends on the two archives only.
    """
    earlier = site.verdicts()
    kept: dict[str, Verdicts] = {}
    for group in groups:
        block = Block()
        candidates: list[Record] = []
        for entry in _full(site, [entry for entry in entries if entry["group"] == group]):
            block.add(entry)
            if len(entry["recordings"]) >= FEWEST and len(candidates) < MOST_CANDIDATES:
                candidates.append(entry)
        for basis, comparison in list(judged_pairs(candidates))[: MOST_OF_SITE - len(kept)]:
            pair = f"{basis['id']} {comparison['id']}"
            if pair not in earlier:
                earlier[pair] = verdicts(basis, comparison, (basis["name"], comparison["name"]))
            kept[pair] = earlier[pair]
            block.judge(pair, kept[pair])
        yield group, block.data()
    site.write_verdicts(kept)
