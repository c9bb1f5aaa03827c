"""The truth table of reruns: each change to a finished study, and the exact jobs of the next run.

The study is `mini_project.STUDY`: two drives, three measurements. The tests check Snakemake against each row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import rerun_changes as after
from rerun_changes import Change

Jobs = dict[str, list[str]]
"""Jobs by rule, in the format of `Project.jobs`."""

IOPS, SATURATION, REPLAY = "pts-iops", "pts-write-saturation", "trace-replay"
MEASUREMENTS = (IOPS, SATURATION, REPLAY)


def of(drives: Iterable[str] = ("op28", "op7"), measurements: Iterable[str] = MEASUREMENTS, run: str = "") -> list[str]:
    """Return recordings by the names of their jobs."""
    return sorted(f"{drive}/{measurement}{run}" for drive in drives for measurement in measurements)


def study(*rules: str) -> Jobs:
    """Return one job of the study for each of these rules."""
    return {rule: [""] for rule in rules}


def facts(*analyses: str) -> Jobs:
    """Return the jobs that write new facts for these analyses."""
    return {"facts": sorted(analyses)}


def chains(recordings: list[str]) -> Jobs:
    """Return the jobs that use the drives for these recordings."""
    replays = [recording for recording in recordings if REPLAY in recording]
    others = [recording for recording in recordings if recording not in replays]
    chain = dict.fromkeys(("purge", "precondition"), recordings)
    return chain | {rule: which for rule, which in (("measure", others), ("replay", replays)) if which}


def comparisons(*measurements: str) -> Jobs:
    return {"comparison_figures": sorted(measurements)}


def analysed(recordings: list[str]) -> Jobs:
    """Return the jobs of the tables and figures of these recordings; all runs of a measurement share theirs."""
    series = sorted({"/".join(recording.split("/")[:2]) for recording in recordings})
    return {"tables": series, "figures": series}


def measured(recordings: list[str], *measurements: str) -> Jobs:
    """Return the jobs that make these recordings new in a study with these measurements."""
    return chains(recordings) | analysed(recordings) | JUDGED | comparisons(*(measurements or MEASUREMENTS))


REPORT = study("report")
JUDGED = study("analysis") | comparisons(*MEASUREMENTS) | REPORT
"""Jobs that depend on the tables of recordings."""
OTHER_FACTS = facts("analysis", "report")
"""A change of the study of which the analysis and the report know."""
OTHER_RECORDINGS = facts("analysis", "comparisons", "report")
TRACE = {rule: ["sqlite"] for rule in ("trace_statistics", "trace_figures")}
ANALYSIS = analysed(of()) | JUDGED | TRACE
"""All jobs that use no drive, except those of the facts."""
OP7_IOPS = ["op7/pts-iops"]
ITS_TABLES = analysed(OP7_IOPS) | JUDGED
NOTHING: Jobs = {}


@dataclass(frozen=True)
class Case:
    """A change, and the jobs of the run that follows it."""

    change: str
    make: Change
    jobs: Jobs
    alone: bool = False
    """Whether the change may matter together with another harmless one."""
    runs: bool = False
    """Whether the tests also run the jobs, and check that nothing remains to do."""


CASES = (
    Case("threshold (`relative_standard_error`)", after.THRESHOLD, JUDGED | OTHER_FACTS),
    Case("`margin` of the deltas", after.MARGIN, JUDGED | OTHER_FACTS),
    Case(
        "limit of taint (`taint: {load: 30%}`)",
        after.mini("basis:", "taint: {load: 30%}\nbasis:"),
        analysed(of()) | JUDGED | facts("tables"),
    ),
    Case(
        "`basis` of the deltas",
        after.mini("basis: op7", "basis: op28"),
        JUDGED | facts("analysis", "comparisons", "report"),
    ),
    Case(
        "code of one module of figures",
        after.append("scripts/drivelab/figures/kinds/soaks.py"),
        {"figures": of(), "trace_figures": ["sqlite"]}
        | comparisons(*MEASUREMENTS)
        | REPORT
        | facts("comparisons", "figures", "report"),
    ),
    Case(
        "module that an analysis imports",
        after.append("scripts/drivelab/analysis/deltas/deltas.py"),
        JUDGED | OTHER_FACTS,
    ),
    Case("script of an analysis", after.append("scripts/analysis.py"), JUDGED | facts("analysis")),
    Case(
        "template of the report",
        after.append("scripts/drivelab/report/templates/report.css", "\n"),
        REPORT | facts("report"),
    ),
    Case(
        "titles of the study and of a protocol",
        after.both(
            after.mini("name: mini\n", "name: mini\ntitle: Two drives\n"),
            after.edit(after.PROTOCOL, "title: IOPS", "title: Operations"),
        ),
        REPORT | facts("report"),
    ),
    Case(
        "parameter of a protocol that the study overrides",
        after.edit(after.PROTOCOL, "runtime: 60s", "runtime: 61s"),
        JUDGED | OTHER_FACTS,
    ),
    Case("comment in a protocol", after.edit(after.PROTOCOL, "  - loop:", "  # a remark\n  - loop:"), NOTHING),
    Case("comment in the study", after.mini("basis: op7\n", "basis: op7   # the smaller one\n"), NOTHING),
    Case("comment in rules", after.comment_in_rules, NOTHING),
    Case("code of a measurement", after.append("scripts/drivelab/run/loop.py"), NOTHING),
    Case(
        "version of drivelab",
        after.edit("scripts/drivelab/__init__.py", '__version__ = "', '__version__ = "9'),
        NOTHING,
    ),
    Case("order of keys in study and protocol", after.key_order, NOTHING),
    Case("name of the study's file", after.renamed_study, REPORT | facts("report")),
    Case("`concurrency`", after.mini("basis:", "concurrency: 2\nbasis:"), NOTHING),
    Case("`order`", after.mini("basis:", "order: {random: 7}\nbasis:"), NOTHING),
    Case("file times after a checkout", after.checkout, NOTHING),
    Case("checkout of another commit and back", after.other_commit_and_back, NOTHING),
    Case("results from an archive with times in seconds (`tar`)", after.archived_in_seconds, NOTHING),
    Case("results copied without their times (`cp -r`)", after.copied_without_times, NOTHING, alone=True),
    Case(
        "clock set back by a day, and the threshold",
        after.both(after.clock_set_back, after.THRESHOLD),
        JUDGED | OTHER_FACTS,
    ),
    Case("`.snakemake` lost", after.gone(".snakemake"), NOTHING, alone=True),
    Case(
        "`.snakemake` lost, and the threshold",
        after.both(after.gone(".snakemake"), after.THRESHOLD),
        JUDGED | OTHER_FACTS,
        runs=True,
    ),
    Case("records of Snakemake in a newer format", after.records_of_format(7), NOTHING, alone=True),
    Case("records of another Snakemake in the same format", after.records_with_more, NOTHING),
    Case("all tables deleted", after.gone("results/tables"), ANALYSIS),
    Case("the tables of a measurement deleted", after.gone("results/tables/op7/pts-iops"), ITS_TABLES),
    Case("a table of the study deleted", after.gone("results/tables/deltas.parquet"), JUDGED),
    Case(
        "the figures of a measurement deleted",
        after.gone("results/figures/op7/pts-iops"),
        {"figures": OP7_IOPS} | REPORT,
    ),
    Case("the report deleted", after.gone("results/report/index.html"), study("report")),
    Case("all logs deleted", after.gone("results/logs"), NOTHING),
    Case("a recording deleted", after.gone("results/recordings/op7/pts-iops/*"), measured(OP7_IOPS)),
    # The chain finds all cells finished and writes the manifest.
    Case(
        "only the manifest of a recording deleted",
        after.gone("results/recordings/op7/pts-iops/*/recording.json"),
        measured(OP7_IOPS),
    ),
    Case("a manifest touched", after.same_manifest_touched, NOTHING),
    Case("a recording replaced", after.replaced_recording, ITS_TABLES, runs=True),
    Case("evidence altered under its manifest", after.altered_evidence, NOTHING),
    Case(
        "one more drive",
        after.mini("drives: [op7, op28]", "drives: [op7, op28, op28-512e]"),
        measured(of(["op28-512e"])) | OTHER_RECORDINGS,
    ),
    Case("a drive removed", after.WITHOUT_OP28, study("analysis") | REPORT | OTHER_RECORDINGS),
    Case(
        "two more replicates (`runs: 3`)",
        after.mini("basis:", "runs: 3\nbasis:"),
        measured(sorted([*of(run="/run2"), *of(run="/run3")])) | OTHER_RECORDINGS,
    ),
    Case(
        "block size of one protocol for one drive",
        after.one_block_size_of_op7,
        measured(OP7_IOPS) | OTHER_RECORDINGS,
        runs=True,
    ),
    Case(
        "a measurement removed, or moved to another study",
        after.mini(after.REPLAY_ENTRY, ""),
        JUDGED | comparisons(IOPS, SATURATION) | OTHER_RECORDINGS,
    ),
    Case("measurements listed in another order", after.reordered, JUDGED | OTHER_RECORDINGS),
    Case(
        "a measurement renamed",
        after.mini("  - protocol: pts-iops\n", "  - protocol: pts-iops\n    name: iops\n"),
        measured(of(measurements=["iops"]), "iops", SATURATION, REPLAY) | OTHER_RECORDINGS,
    ),
    Case("file of a trace moved", after.moved_trace, TRACE | JUDGED),
    Case("note in the sheet of drives", after.sheet("7 % over-provisioning\n", "the first one\n"), NOTHING),
    Case("`host` of a drive", after.column("host", "elsewhere"), NOTHING),
    Case("path of a drive (`device`), of the same serial", after.moved_drive, NOTHING),
    Case("a drive renamed in sheet and study", after.renamed_drive, measured(of(["left"])) | OTHER_RECORDINGS),
    Case("sheet of drives renamed", after.renamed_sheet, NOTHING),
    Case("project moved", after.moved, NOTHING),
)
