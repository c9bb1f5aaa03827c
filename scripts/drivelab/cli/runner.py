"""Runs Snakemake for a study, shows what happens, clears up after a crash, and ends with the result."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from drivelab import parent
from drivelab.cli import cluster, cluster_log
from drivelab.cli.progress_view import ProgressView
from drivelab.config.restored import restored_folder
from drivelab.config.schema import ROOT
from drivelab.errors import UserError
from drivelab.host.settings import for_study
from drivelab.host.temporary import recover_all
from drivelab.recording.places import RUN_LOCK
from drivelab.stages import consent, failures, locks
from drivelab.stages.budget import require_within
from drivelab.stages.cluster import Cluster
from drivelab.stages.engines import check_engines
from drivelab.stages.headline import headline
from drivelab.stages.layout import Layout
from drivelab.stages.outlook import outlook
from drivelab.stages.planning import Campaign
from drivelab.stages.platforms import host_of, this_host
from drivelab.stages.restored_study import refuse_foreign_campaign, snakemake_arguments, snakemake_environment
from drivelab.stages.writable import require_writable
from drivelab.units import format_duration
from drivelab.virtual import manage
from drivelab.words import counted, some

_POLL_S = 0.5
_RELEASE_S = 30.0
"""How long a stage that was told to end may take to let go of its drive."""
_LEAST_FREE_BYTES = 2**20
"""Less than a cell's evidence takes."""
_NAMED = 3
"""Recordings that are named in the end of a run."""
_LAST_WORDS = 25
"""Lines of a log in which no job says why."""
_MOST_SAID = 20
"""Sentences of a run that failed: a fleet may have a thousand drives that fail alike."""


def run_study(path: Path, cores: int, yes: bool, profile: Path | None = None) -> int:
    """Run what is left of a study; returns 0 when all is done and up to date, 1 when something failed.

    With the `profile` of a cluster its jobs are sent to the hosts that hold the drives. Raises UserError before
    anything is touched when the configuration does not hold, or consent is missing.
    """
    _refuse_other_records(profile)
    hosts = Cluster.of_profile(profile) if profile else None
    campaign = Campaign.load(path, everywhere=hosts is not None)
    layout = Layout(campaign)
    layout.check_owner()
    require_writable(campaign.study.results)
    submission = None
    if profile is not None and hosts is not None:
        hosts.refuse(campaign)
        submission = cluster.Submission(profile, campaign)
    refuse_foreign_campaign(campaign)
    check_engines(plan for plan in campaign.to_do if host_of(plan) == this_host() or submission is None)
    campaign.approve_drives()
    _show_and_agree(campaign, yes)
    logs = campaign.study.results / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with (campaign.study.results / RUN_LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"study '{campaign.study.name}' is being run or archived already; wait for it, or end it first"
            ) from None
        if locks.clear(path, campaign.study.results):
            print("The last run was cut short; going on where it stopped.")
        for words in submission.clear_queue() if submission else ():
            _say(words)
        print(headline(campaign), flush=True)
        started_s = time.monotonic()
        with _host_as_wanted(campaign):
            status = None
            try:
                status = _snakemake(campaign, path, cores, logs / "snakemake.log", profile, submission)
            finally:
                ended = status is not None and status >= 0  # else stages may still be letting go
                _release(
                    layout.virtual_drives(), None if status == 0 else layout.kept_drives(), 0 if ended else _RELEASE_S
                )
    if status != 0:
        explain(logs, status)
        return 1
    _result(campaign, time.monotonic() - started_s)
    return 0


def _refuse_other_records(profile: Path | None) -> None:
    """Raise UserError where a profile or the environment has Snakemake keep its records elsewhere than in files.

    Snakemake itself reads the options, which takes a second, so it is asked only where somebody may have changed them.
    """
    of_workflow = "".join(file.read_text(errors="replace") for file in (ROOT / "profiles/default").glob("*.yaml"))
    if profile is None and "SNAKEMAKE_PROFILE" not in os.environ and "persistence" not in of_workflow:
        return
    named = [] if profile is None else ["--profile", str(profile)]
    command = [sys.executable, "-m", "drivelab.snakemake_records", "--cores", "1", *named]
    done = parent.run(command, stdout=subprocess.PIPE, env=_environment())
    if done.returncode == 2:
        raise UserError(done.stdout.strip())


def _show_and_agree(campaign: Campaign, yes: bool) -> None:
    """What is about to be lost, for real drives that something is left to be measured on; none beyond the budget."""
    found = outlook(campaign)
    require_within(campaign, found)
    rows = [row for row in found if not row.virtual and row.to_do]
    for row in rows:
        print("\n".join(row.lines()), flush=True)
    consent.require(campaign.study, [consent.Drive(row.drive, row.serial, tuple(row.by_host)) for row in rows], yes)


@contextmanager
def _host_as_wanted(campaign: Campaign) -> Iterator[None]:
    """What killed studies and stages left is put back first; what the study asks for is set while it runs."""
    for words in recover_all():
        _say(words)
    if not campaign.needs_fio or campaign.everywhere:
        yield
        return
    change = campaign.study.host_settings == "apply"  # to a single scenario then
    with for_study(campaign.scenarios[0], campaign.real_drives(), change=change, say=_say):
        yield


def _say(text: str) -> None:
    print(text, flush=True)


def _snakemake(
    campaign: Campaign, path: Path, cores: int, log: Path, profile: Path | None, submission: cluster.Submission | None
) -> int:
    """Snakemake's exit status. It ends when this process is killed.

    It has a process group of its own with its jobs: a signal to this process alone must reach the stages too, or
    Snakemake waits for them to finish.
    """
    if submission is not None:
        arguments, environment = submission.arguments(cores), submission.environment(_environment())
    else:
        arguments, environment = ["--cores", str(cores)], _environment()
        if profile is not None:
            arguments += ["--profile", str(profile)]
    # In the background of a script SIGINT is ignored, and that is inherited: it is what ends Snakemake below.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "snakemake", *snakemake_arguments(), *arguments,
               "--config", f"study={path}", "--nocolor"]  # fmt: skip
    view = ProgressView(campaign)
    with log.open("w") as output:
        process = parent.start(command, stdout=output, stderr=subprocess.STDOUT, env=environment, process_group=0)
        try:
            with view:
                while process.poll() is None:
                    view.update()
                    time.sleep(_POLL_S)
        except BaseException:
            said = submission.cancel() if submission else []
            # On SIGTERM Snakemake waits for jobs on other hosts to finish.
            os.killpg(process.pid, signal.SIGINT if submission else signal.SIGTERM)
            process.wait()
            said += submission.cancel() if submission else []  # what it has submitted meanwhile
            for words in dict.fromkeys(said):
                _say(words)
            raise
    return process.returncode


def _environment() -> dict[str, str]:
    """Rules call `drivelab` by name: it is beside the interpreter, also where nobody activated the environment."""
    return {
        **os.environ,
        **snakemake_environment(),
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
    }


def _release(names: list[str], keep: Path | None, patience_s: float) -> None:
    """End the study's virtual drives, also after a Snakemake that was killed; what another study uses goes on.

    With `keep` their state is kept there, so that the next run can go on.
    """
    deadline_s = time.monotonic() + patience_s
    for name in names:
        while (used := manage.in_use(name)) and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        if used:
            continue
        try:
            manage.stop(name, keep=keep)
        except UserError as error:
            _say(f"the state of virtual drive '{name}' is lost, and what it interrupted begins anew ({error})")
            with suppress(UserError):
                manage.stop(name)


def explain(logs: Path, status: int) -> None:
    """The sentences with which stages failed, or which of them ended without any; else where to look."""
    whole = (logs / "snakemake.log").read_text(errors="replace")
    together = {one for chain in cluster_log.failed_chains(whole) for one in chain.parts}
    sentences = [*failures.sentences(whole, together), *cluster_log.ended_jobs(whole)]
    if shutil.disk_usage(logs).free < _LEAST_FREE_BYTES:
        sentences = [f"drivelab: {logs.parent}: No space left on device; make room and run again to go on"]
    if status < 0:
        sentences.append(
            f"drivelab: Snakemake was killed by signal {-status}; what is finished is kept, run again to go on"
        )
    if len(sentences) > _MOST_SAID:
        sentences = [*sentences[:_MOST_SAID], f"drivelab: and {len(sentences) - _MOST_SAID} more like these in the log"]
    if not sentences:
        words = f"drivelab: Snakemake ended with status {status}, and no job of it has failed; its last words:"
        sentences = [words, *whole.splitlines()[-_LAST_WORDS:]]
    print("\n".join(sentences), file=sys.stderr)
    print(
        f"drivelab: the study is not complete; what is finished is kept. Log: {logs}/snakemake.log",
        file=sys.stderr,
    )


def _result(campaign: Campaign, seconds: float) -> None:
    from drivelab.report.headline import first_headlines

    shown = campaign.study.results if restored_folder(Path.cwd()) is None else campaign.study.results.resolve()
    print(f"Done in {format_duration(seconds)}. Report: {shown / 'report/index.html'}")
    tables = campaign.study.results / "tables"
    if campaign.fleet:
        from drivelab.report.fleet import verdict

        for sentence in verdict(tables, campaign.study.basis, campaign.study.margin_pct):
            print(f"  {sentence}")
        return
    recorded = [tables / one.plan.recording for one in campaign.plans]
    paths: dict[str, Path | list[Path]] = {
        "summary": tables / "summary.parquet",
        "deltas": tables / "deltas.parquet",
        "steady_state": [folder / "steady_state.parquet" for folder in recorded],
        "replays": [folder / "replays.parquet" for folder in recorded],
    }
    for line in first_headlines(paths, campaign.study.basis):
        print(f"  {line}")
    print(left_out_words(tables / "exclusions.parquet"))


def left_out_words(exclusions: Path) -> str:
    """How much evidence is in no result, from the study's table `exclusions`, which recordings are not at all, and
    where to read more.
    """
    from drivelab.analysis.exclusions import WHOLE
    from drivelab.tables import io

    left_out = io.read(exclusions, "exclusions")
    if left_out.empty:
        return "Nothing was left out of the results."
    counts = left_out["fault"].value_counts(sort=False)
    faults = ", ".join(f"{fault} {count}" for fault, count in counts.items())
    things = f"{counted(len(left_out), 'thing')} {'was' if len(left_out) == 1 else 'were'}"
    whole = list(dict.fromkeys(left_out.loc[left_out["place"] == WHOLE, "recording"]))
    named = f", among them all of {some(whole, _NAMED)}" if whole else ""
    return (
        f"{things} left out of the results ({faults}){named}: see the top of the report, or "
        f'drivelab query "FROM exclusions" --results {exclusions.parent.parent}'
    )
