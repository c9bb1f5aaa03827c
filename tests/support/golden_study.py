"""The golden study of `tests/golden/study`: its kept recordings, what they must give, and how both are made."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from mini_project import ROOT, Project

from drivelab.campaign.planning import Campaign

KEPT = ROOT / "tests/golden/study"
STUDY = "config/golden.yaml"
COMMANDS = {
    "plan": ("plan", STUDY),
    "study_status": ("study", "status", STUDY),
    "compare": ("compare", "golden7", "golden28", "--study", STUDY),
    "run": ("run", STUDY),
}
"""Commands whose output is approved; `run` finds everything measured and analysed, and says how it ended."""
FOR_LONG_TRACES = {"trace-set-full", "trace-set-quick"}
"""At full scale they refuse sets of traces that write as little as the shipped ones."""
_BLOCKS = {"p", "div", "tr", "li", "h1", "h2", "h3", "h4", "summary", "caption", "figcaption", "section", "dt", "table"}
_CELLS = {"td", "th", "dd"}
_UNREAD = {"script", "style", "svg", "template"}


class GoldenProject(Project):
    """A project with the golden study; its figures are not drawn."""

    study = STUDY

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        shutil.copy(KEPT / "golden.yaml", folder / STUDY)
        for name in ("virtual_drives.yaml", "drives.tsv"):
            with (folder / "config" / name).open("a") as file:
                file.write((KEPT / name).read_text())


def restore(project: GoldenProject) -> None:
    """Put the kept recordings into the results of a project."""
    with tarfile.open(KEPT / "recordings.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Debian 12's Python has none
        archive.extractall(project.folder)


def keep(project: GoldenProject) -> None:
    """Keep the recordings of a project."""
    with tarfile.open(KEPT / "recordings.tar.xz", "w:xz", preset=9) as archive:
        archive.add(project.folder / "results/recordings", "results/recordings", filter=_nobodys)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def tables(project: GoldenProject) -> dict[str, pd.DataFrame]:
    """Return all tables of the analysed study by name; those of recordings as one, with a column `of`."""
    folder = project.folder / "results/tables"
    found: dict[str, list[pd.DataFrame]] = {}
    for path in sorted(folder.rglob("*.parquet")):
        *place, _ = path.relative_to(folder).parts
        of = "/".join([*place[:2], place[2].rpartition("-")[2]] if len(place) > 2 else place)  # without the digest
        frame = pd.read_parquet(path)
        if len(frame):
            found.setdefault(path.stem, []).append(frame.assign(of=of))
    return {name: pd.concat(frames, ignore_index=True) for name, frames in found.items()}


def texts(project: GoldenProject) -> dict[str, str]:
    """Return what people read: the report without its markup, and what commands print."""
    page = (project.folder / "results/report/index.html").read_text()
    printed = {"report": "\n".join(_Words.of(page)) + "\n"}
    for name, arguments in COMMANDS.items():
        done = project.drivelab(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        printed[name] = done.stdout
    return {name: _without_moment(project, text) for name, text in printed.items()}


def _without_moment(project: GoldenProject, text: str) -> str:
    """Replace what depends on the folder and the time of the analysis."""
    text = text.replace(str(project.folder), "FOLDER")
    text = re.sub(r"(reported|Report run|Written by drivelab,) [-\d]+ [:\d]+ UTC", r"\1 DATE", text)
    text = re.sub(r"Done in .*?\. Report", "Done in TIME. Report", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


class _Words(HTMLParser):
    """The words of a page, one line for each paragraph or row."""

    def __init__(self) -> None:
        super().__init__()
        self._unread: list[str] = []
        self._words: list[str] = []

    @classmethod
    def of(cls, page: str) -> Iterator[str]:
        parser = cls()
        parser.feed(page)
        for line in "".join(parser._words).split("\n"):
            if words := re.sub(r"\s*\|\s*", " | ", re.sub(r"\s+", " ", line)).strip(" |"):
                yield words

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNREAD:
            self._unread.append(tag)
        self._words.append("\n" if tag in _BLOCKS else "")

    def handle_endtag(self, tag: str) -> None:
        if self._unread and tag == self._unread[-1]:
            self._unread.pop()
        self._words.append("\n" if tag in _BLOCKS else "|" if tag in _CELLS else "")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self._words.append(data.replace("\n", " "))


def digests(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Return the digests of the plans of all shipped protocols: by class, scale, measurement.

    `folder` is the current one, and has a copy of the configuration and traces. The drive is in the sheet, not there.
    """
    (folder / "config/drives.tsv").write_text(
        "drive\tdevice\tserial\tdestructive\tnote\tendurance_tbw\tover_provisioning_pct\n"
        "fast\t/dev/disk/by-id/nvme-x\tS1\tyes\t\t600\t7\n"
    )
    result: dict[str, dict[str, dict[str, str]]] = {}
    names = sorted(path.stem for path in (folder / "config/protocols").glob("*.yaml"))
    for drive_class, scale in product(("enterprise", "client"), ("", "demo")):
        study = {
            "name": "all", "class": drive_class, "drives": ["fast"],
            "traces": {"sqlite": {"shipped": "sqlite-inserts"}},
            "measurements": [
                entry(folder, name) | ({"scale": scale} if scale else {}) for name in names
                if scale or name not in FOR_LONG_TRACES
            ],
        }  # fmt: skip
        (folder / "config/all.yaml").write_text(yaml.safe_dump(study))
        plans = Campaign.load("config/all.yaml").plans
        result.setdefault(drive_class, {})[scale or "full"] = {one.plan.measurement: one.plan.digest for one in plans}
    return result


def entry(folder: Path, name: str) -> dict[str, Any]:
    """Return a protocol as a study's measurement, with the trace or application that it needs."""
    body: Mapping[str, Any] = yaml.safe_load((folder / f"config/protocols/{name}.yaml").read_text())
    steps = json.dumps(body["measure"])
    takes_a_trace = any(word in steps for word in ('"replay"', '"streams"', '"arrivals": "trace"'))
    needs = {"trace": "sqlite"} if takes_a_trace else {}
    return {"protocol": name, **needs, **({"application": "sqlite-inserts"} if '"application"' in steps else {})}
