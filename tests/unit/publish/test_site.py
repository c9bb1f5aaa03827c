"""A site depends on the set of archives only; it is updated, validated and refused as documented."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from made_archives import Result, made_archive, study_files, write_archive

from drivelab.core.errors import UserError
from drivelab.plan.schema import load_schema
from drivelab.publish import site as sites
from drivelab.publish.files import Site
from drivelab.publish.site import publish, summary_line


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def archives(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.tar.gz" for name in ("one", "two", "three")]
    made_archive(paths[0], Result("a", recordings=3), Result("b", "Maker M2", speed=1.5, recordings=3))
    made_archive(paths[1], Result("c", firmware="F2", date="2026-03-04", speed=1.1, recordings=3))
    made_archive(paths[2], Result("d", "Maker M3", protocol="pts-latency"), report="<!DOCTYPE html><p>report</p>")
    return paths


def read(folder: Path, name: str = "index.json") -> Any:
    return json.loads((folder / name).read_text())


def test_the_order_and_the_names_of_archives_do_not_matter(archives: list[Path], tmp_path: Path) -> None:
    publish(archives, tmp_path / "site")
    other = tmp_path / "renamed.tar.gz"
    other.write_bytes(archives[0].read_bytes())
    publish([*archives[:0:-1], other, other], tmp_path / "again")
    assert files(tmp_path / "site") == files(tmp_path / "again")


def test_a_later_run_reads_only_new_archives(
    archives: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(archives[:2], tmp_path / "site")
    read_archive, paths = sites.read_archive, []
    monkeypatch.setattr(sites, "read_archive", lambda path: paths.append(path) or read_archive(path))
    monkeypatch.setattr(sites, "verdicts", lambda *sides: pytest.fail("the pair was judged before"))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "site/studies").rglob("*.json")}
    outcome = publish(archives, tmp_path / "site")
    assert paths == archives[2:]
    assert (outcome.new, outcome.kept, outcome.removed) == (1, 2, 0)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    monkeypatch.undo()
    publish(archives, tmp_path / "fresh")
    assert files(tmp_path / "site") == files(tmp_path / "fresh")
    assert "3 studies of 3 drive models (1 new, 2 unchanged, 0 removed)" in summary_line(tmp_path, outcome)


def test_a_study_that_is_not_named_any_more_vanishes(archives: list[Path], tmp_path: Path) -> None:
    publish(archives, tmp_path / "site")
    assert publish(archives[:1], tmp_path / "site").removed == 2
    publish(archives[:1], tmp_path / "fresh")
    assert files(tmp_path / "site") == files(tmp_path / "fresh")


def test_index_and_records_follow_their_schema(archives: list[Path], tmp_path: Path) -> None:
    publish(archives, tmp_path / "site", "Drives & more")
    schema = load_schema("site")
    validator = jsonschema.Draft202012Validator(schema)
    index = read(tmp_path / "site")
    assert list(validator.iter_errors(index)) == []
    of_record = validator.evolve(schema={"$ref": "#/$defs/record", "$defs": schema["$defs"]})
    for study in index["studies"]:
        assert list(of_record.iter_errors(read(tmp_path / "site", study["record"]))) == []
    assert index["title"] == "Drives & more"
    assert {study["report"] is None for study in index["studies"]} == {True, False}
    assert [entry["key"]["cell_label"] for entry in index["entries"]] == ["RND 4KiB 0/100"] * 4
    value = read(tmp_path / "site", index["studies"][0]["record"])["entries"][0]["values"][0]
    assert (value["words"], value["unit_words"]) == ("random write 4 KiB", "IOPS")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.links += [value for name in ("href", "src") if (value := given.get(name))]
        self.ids |= {given["id"] or ""} if "id" in given else set()


def test_all_links_are_relative_and_lead_somewhere(archives: list[Path], tmp_path: Path) -> None:
    site = tmp_path / "site"
    publish(archives, site)
    pages = {}
    for path in [site / "index.html", site / "compare.html", *(site / "models").iterdir()]:
        pages[path.resolve()] = parser = _Links()
        parser.feed(path.read_text())
    for path, parser in pages.items():
        for link in parser.links:
            target, _, anchor = link.partition("#")
            assert not re.match(r"[a-z]+:|/", target)
            found = (path.parent / target).resolve() if target else path
            assert found.is_file(), link
            if anchor and found in pages and not anchor.startswith("a="):
                assert anchor in pages[found].ids, link


def test_history_and_models_group_what_belongs_together(archives: list[Path], tmp_path: Path) -> None:
    publish(archives, tmp_path / "site")
    index = read(tmp_path / "site")
    (model,) = [model for model in index["models"] if model["name"] == "Maker M1"]
    page = (tmp_path / "site" / model["page"]).read_text()
    assert page.index("2026-03-04") < page.index("2026-01-02")
    assert "firmware F1, F2" in page
    assert "latest of 2 results" in page
    assert "./drivelab evidence drive=c measurement=pts-iops &#39;cell_label=RND 4KiB 0/100&#39; metric=iops" in page
    assert len({entry["group"] for entry in index["entries"]}) == 2


def test_a_folder_with_other_files_is_not_touched(archives: list[Path], tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/models").mkdir()
    (tmp_path / "home/models/mine.html").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for name, reason in (("home", "is not empty, and holds no site"), ("link", "is not a folder"),
                         ("one.tar.gz", "is not a folder")):  # fmt: skip
        with pytest.raises(UserError, match=reason):
            publish(archives, tmp_path / name)
    assert (tmp_path / "home/models/mine.html").read_text() == "mine"


def test_two_runs_do_not_write_one_site(archives: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "site"
    during: list[str] = []

    def watch(path: Path) -> None:
        with pytest.raises(UserError, match="another 'drivelab publish' writes this site") as refused:
            publish(archives, folder)
        during.append(str(refused.value))

    publish(archives[:1], folder, watch=watch)
    assert during
    assert publish(archives[:1], folder).kept == 1
    with pytest.raises(UserError, match="is a folder"):
        publish([tmp_path], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_an_interrupted_first_run_continues(archives: list[Path], tmp_path: Path) -> None:
    publish(archives, tmp_path / "fresh")
    site = tmp_path / "site"
    publish(archives[:1], site)
    for name in ("index.json", "index.html", "compare.html", "verdicts.json"):
        (site / name).unlink()
    for path in (site / "models").iterdir():
        path.unlink()
    (site / "models").rmdir()
    next(site.glob("studies/*/study.json")).write_text('{"format":')
    publish(archives, site)
    assert files(site) == files(tmp_path / "fresh")


@pytest.mark.parametrize("table", ["summary", "conditions", "drives"])
def test_an_archive_without_a_table_is_refused_and_the_pages_stay(
    archives: list[Path], tmp_path: Path, table: str
) -> None:
    publish(archives[:1], tmp_path / "site")
    before = files(tmp_path / "site")
    incomplete = study_files([Result()])
    del incomplete[f"results/tables/{table}.parquet"]
    write_archive(tmp_path / "new.tar.gz", incomplete)
    with pytest.raises(UserError, match=rf"new\.tar\.gz: .*{table}"):
        publish([archives[0], tmp_path / "new.tar.gz"], tmp_path / "site")
    assert files(tmp_path / "site") == before


def test_a_record_of_another_version_is_written_again(archives: list[Path], tmp_path: Path) -> None:
    publish(archives[:1], tmp_path / "site")
    path = next((tmp_path / "site").glob("studies/*/study.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "drivelab": "0.0.1"}))
    assert not Site(tmp_path / "site").has_study(path.parent.name)
    assert publish(archives[:1], tmp_path / "site").new == 1
