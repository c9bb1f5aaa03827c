"""Every command, query, script and configuration example in README and docs is run, or checked by its parser.

The blocks of a page run in order, in a copy of the project with a finished study. Commands in the tables of
`doc_commands` do not run here: their arguments are parsed, and the tests that run them are named. Comments before a
block give further instructions:

* `<!-- test: file PATH -->`: the block is the file PATH of the project (a drive sheet or a study is changed as
  `doc_commands` says, so that virtual drives replace real ones)
* `<!-- test: as it is PATH -->`: the same, without any change
* `<!-- test: shipped PATH -->`: the block is equal to that file of the project
* `<!-- test: rows PATH -->`: the shipped drive sheet with these rows, without any change
* `<!-- test: entry PATH -->`: the shipped file with this entry at its end
* `<!-- test: status N -->`: the command ends with that status
* `<!-- test: output -->`: the block before prints these lines; … matches anything
* `<!-- test: protocol|steps|applications|virtual drives|host settings|profile -->`: the kind of a YAML example that is
  not part of a study
* `<!-- test: printed -->`: the same, of a command that only the test named in `doc_commands` runs
* `<!-- test: query FOLDER -->`: the results folder of an SQL block, if it is not the demo's
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import import_origins as origins
import pytest
import yaml
from doc_commands import (
    ELSEWHERE,
    NOT_RUN,
    Command,
    arguments,
    classified,
    named_test_exists,
    parse,
    shortened_study,
    stand_in_sheet,
    unknown_words,
    with_rows,
)
from doc_pages import ROOT, Block, blocks, mentions, pages
from mini_project import Project
from trace_files import write_capture

from drivelab.plan.schema import validate
from drivelab.plan.yaml_file import load_yaml
from drivelab.trace.capturing import applications
from drivelab.virtual.model import DriveModel


def given(page: str, folder: Path) -> None:
    """Write the files that a page's commands read into the copy of the project."""
    for make in _OF.get(page, ()):
        make(folder)


def _tkperf(folder: Path) -> None:
    for name in ("old.xml", "s4600.xml"):
        origins.tkperf(folder / name)


def _fio(folder: Path) -> None:
    for second in range(3):
        job = origins.job(1000.0 + second, 0.0, origins.options())
        origins.write(folder / f"runs/{second}.json", origins.document(job, second=100 * second))


def _printed(folder: Path) -> None:
    (folder / "iops.csv").write_text("block_size,100/0,65/35,0/100\n4k,80928.6,66664.6,61265.2\n")


def _msr(folder: Path) -> None:
    lines = [f"{128166372003061629 + 10000 * i},usr,0,Read,{4096 * i},4096,{1000 + i}" for i in range(50)]
    for name in ("web.csv.gz", "usr_0.csv.gz"):
        with gzip.open(folder / name, "wt") as file:
            file.write("\n".join(lines) + "\n")


def _alibaba(folder: Path) -> None:
    with gzip.open(folder / "io_traces.csv.gz", "wt") as file:
        file.writelines(f"{419 + i % 2},R,{4096 * i},4096,{1577808000000000 + 100 * i}\n" for i in range(50))


def _capture(folder: Path) -> None:
    events = []
    for i in range(20):
        at, sector = 1_000_000 * i, 8 * i
        events += [(at + 1000 * step, letter, "R", sector, 4096) for step, letter in enumerate("QDC")]
    write_capture(folder / "raw", events)


def _demo_as_study(folder: Path) -> None:
    shutil.copy(folder / "config/demo.yaml", folder / "config/study.yaml")


_OF = {
    "README.md": (_tkperf, _msr, _capture),
    "docs/traces.md": (_capture,),
    "docs/archive.md": (_demo_as_study,),
    "docs/cluster.md": (_demo_as_study,),
    "docs/importing.md": (_tkperf, _fio, _printed),
    "docs/trace_formats.md": (_alibaba, _msr),
}


PAGES = [page for page in pages() if blocks(page)]
LANGUAGES = {"sh", "yaml", "tsv", "csv", "sql", "python", "json", "text"}
HANGS_S = 1800
REDRAWN = "docs/how-to/paper.md"
"""A page that draws the figures of the finished study from its tables; that they were drawn before is made up."""
MADE_UP_FIGURES = """
from pathlib import Path
from drivelab.campaign.planning import Campaign
from drivelab.figures.of_recording import figures_of_recording
from drivelab.figures.over_drives import figures_over_drives
from drivelab.workflow.layout import Layout
layout = Layout(Campaign.load("config/demo.yaml"))
plans = {planned.plan.recording: planned.plan for planned in layout.plans}
drawn = {name: figures_of_recording(plan.subject) for name, plan in plans.items()}
for name, recordings in layout.comparisons.items():
    drawn[f"comparison/{name}"] = figures_over_drives([plans[one] for one in recordings], name, "op7")
for place, names in drawn.items():
    folder = Path(layout.results, "figures", place)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.svg").touch()
"""
WORKED_EXAMPLES = {
    "docs/how-to/detector.md": "tests/unit/tables/test_runs.py",
    "docs/how-to/figure.md": "tests/unit/figures/test_registry.py",
    "docs/how-to/importer.md": "tests/unit/imported/test_new_importer.py",
    "docs/how-to/purge-method.md": "tests/unit/drives/purge/test_new_method.py",
}
"""Pages whose Python is a new file of the library, and the tests that use it as such."""


def test_every_block_is_classified(record_property: Any) -> None:
    kinds: Counter[str] = Counter()
    for page in PAGES:
        for block in blocks(page):
            assert block.language in LANGUAGES, f"{block.place}: no language of {', '.join(sorted(LANGUAGES))}"
            if block.language == "sh":
                commands = [classified(command) for command in block.commands()]
                kinds.update(command.kind for command in commands)
                for command in commands:
                    assert command.kind != "parsed" or named_test_exists(command.reason), f"{block.place}: {command}"
            else:
                kinds[block.language] += 1
    print(dict(kinds))
    record_property("commands", dict(kinds))
    assert kinds["run"] > kinds["parsed"] + kinds["elsewhere"]


def test_the_tables_name_only_commands_of_pages() -> None:
    lines = [
        command for page in PAGES for block in blocks(page) if block.language == "sh" for command in block.commands()
    ]
    patterns = [row[0] for row in (*NOT_RUN, *ELSEWHERE)]
    assert [pattern for pattern in patterns if not any(re.search(pattern, line) for line in lines)] == []


@pytest.mark.parametrize("page", pages())
def test_commands_in_sentences_exist(page: str) -> None:
    unknown = {mention: words for mention in mentions(page) if (words := unknown_words(mention))}
    assert not unknown


@pytest.mark.long  # pages share a finished study, which takes minutes to make
@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_a_page_do_what_it_says(page: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    runner = Page(page, request, tmp_path)
    for block in blocks(page):
        try:
            getattr(runner, block.language)(block)
        except SystemExit:
            pytest.fail(f"{block.place}: the command does not take these arguments", pytrace=False)
        except Exception as error:
            raise AssertionError(f"{block.place}: {error}") from error


class Page:
    """A page's copy of the project, in which its blocks run."""

    def __init__(self, page: str, request: pytest.FixtureRequest, folder: Path) -> None:
        self.page = page
        self._request = request
        self._folder = folder / "drivelab"
        self._project: Project | None = None
        self.printed = ""

    @property
    def project(self) -> Project:
        """Return the copy, created on first use: a page may have no command to run."""
        if self._project is None:
            self._project = self._request.getfixturevalue("demo").copied(self._folder)
            given(self.page, self._folder)
            if self.page == REDRAWN:
                done = self._project.python(MADE_UP_FIGURES)
                assert done.returncode == 0, done.stderr
        return self._project

    def sh(self, block: Block) -> None:
        self.printed = ""
        for command in map(classified, block.commands()):
            if command.kind == "parsed":
                parse(command.line)
            elif command.kind == "run":
                told = block.directive.split()
                self._run(command, int(told[1]) if told[:1] == ["status"] else 0)

    def _line(self, command: Command) -> str:
        """Return the command line with placeholders replaced by a recording's digest and the study's name."""
        line = re.sub(r"(?<!\.)\bNAME\b", "demo", command.line)
        if "DIGEST" in line:
            place = next((self._folder / "results/recordings/op7/pts-iops").iterdir()).name.partition("-run")[0]
            line = line.replace("DIGEST", place)
        return line

    def _run(self, command: Command, status: int) -> None:
        project, line = self.project, self._line(command)
        if line.startswith("./drivelab "):
            own = ("drivelab.cli.main", *arguments(line))
            done = project.called(*own, timeout_s=HANGS_S, **self._environment)
        else:
            done = subprocess.run(
                ["sh", "-c", line],
                cwd=project.folder,
                env={**project.environment, **self._environment},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=HANGS_S,
            )
        assert done.returncode == status, f"{command.line} ended with {done.returncode}\n{done.stdout}{done.stderr}"
        self.printed += done.stdout + done.stderr

    @property
    def _environment(self) -> dict[str, str]:
        return {"DRIVELAB_RUN_DIR": str(self._folder.parent / "run"), "COLUMNS": "120", "NO_COLOR": "1"}

    def text(self, block: Block) -> None:
        if block.directive == "output":
            lines = [re.escape(line.rstrip()).replace("…", ".*?") for line in block.text.splitlines()]
            printed = "\n".join(line.rstrip() for line in self.printed.replace("\xa0", " ").splitlines())
            assert re.search("\n".join(lines), printed, re.S), f"printed was\n{self.printed}"

    def csv(self, block: Block) -> None:
        self._file(block)

    def tsv(self, block: Block) -> None:
        self._file(block)

    def json(self, block: Block) -> None:
        self._file(block)

    def _file(self, block: Block) -> bool:
        kind, _, name = block.directive.rpartition(" ")
        if kind not in ("file", "as it is", "shipped", "rows", "entry"):
            return False
        path, content = self.project.folder / name, block.text
        is_study = block.language == "yaml" and "measurements" in yaml.safe_load(content)
        if is_study:
            validate(yaml.safe_load(content), "study", block.place)
        match kind:
            case "shipped":
                assert content == (ROOT / name).read_text(encoding="utf-8"), f"is not what {name} has"
            case "rows":
                content = with_rows(content)
            case "entry":
                content = (ROOT / name).read_text(encoding="utf-8") + content
            case "file" if name.endswith("drives.tsv"):
                content = stand_in_sheet(content)
            case "file" if is_study:
                content = shortened_study(content)
        path.write_text(content, encoding="utf-8")
        return True

    def yaml(self, block: Block) -> None:
        if self._file(block):
            return
        path = self._folder.parent / "example.yaml"
        path.write_text(block.text, encoding="utf-8")
        part = yaml.safe_load(block.text) if block.directive == "steps" else load_yaml(path)
        match block.directive:
            case "profile":  # Snakemake's; its plugins may be missing
                assert "executor" in part
            case "steps":
                base = load_yaml(Path("config/protocols/pts-iops.yaml"))
                validate({**base, "measure": part}, "protocol", block.place)
            case "protocol":
                validate(part, "protocol", block.place)
            case "host settings":
                validate(part, "host_settings", block.place)
            case "applications":
                for name, body in part.items():
                    applications.from_mapping(name, body, block.place)
            case "virtual drives":
                for name, body in part.items():
                    DriveModel.from_mapping(name, body)
            case _:
                base = {"name": "example", "drives": ["op7"], "measurements": [{"protocol": "pts-iops"}]}
                validate({**base, **part}, "study", block.place)

    def sql(self, block: Block) -> None:
        place = block.directive.removeprefix("query ") or "results"
        self._run(Command(f"./drivelab query --results {place} {shlex.quote(block.text)}", "run"), 0)

    def python(self, block: Block) -> None:
        if self.page in WORKED_EXAMPLES:
            assert (ROOT / WORKED_EXAMPLES[self.page]).exists()
            return
        path = self._folder.parent / "example.py"
        path.write_text(self._line(Command(block.text, "run")), encoding="utf-8")
        self._run(Command(f"python {path}", "run"), 0)
