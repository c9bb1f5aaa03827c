"""Run Snakemake for a study, show its progress, clean up after a crash, and print the result."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from drivelab.campaign.budget import exceeded, require_within
from drivelab.campaign.capture import refuse_foreign_campaign
from drivelab.campaign.check import check_engines
from drivelab.campaign.outlook import headline, outlook
from drivelab.campaign.planning import Campaign
from drivelab.campaign.results_folder import refuse_foreign, require_writable, set_torn_aside
from drivelab.campaign.study_facts import broken_level, looks
from drivelab.cli.measure import cluster
from drivelab.cli.measure.plan import growth_lines
from drivelab.cli.measure.progress_view import ProgressView
from drivelab.cli.measure.run import ASK, CONTINUE, WAIT
from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.core.terminal import live_display, say
from drivelab.core.units import format_duration
from drivelab.drives.approved import ApprovedDevice
from drivelab.host.settings import for_study
from drivelab.host.stack.stack import disks, layers
from drivelab.host.temporary import recover_all
from drivelab.plan.design import LOOKS
from drivelab.plan.hosts import host_of, this_host
from drivelab.plan.places import ROOT, VARIABLE, restored_folder
from drivelab.recording.folders import is_recorded
from drivelab.recording.writer import write_json
from drivelab.run import consent
from drivelab.run.consent import snakemake_arguments
from drivelab.run.study_lock import hold
from drivelab.telemetry.other_programs import disturbances
from drivelab.trace.capturing.mounts import recover_mounts
from drivelab.virtual import manage
from drivelab.virtual.kept_state import KEPT_DRIVES
from drivelab.virtual.manage import in_use
from drivelab.workflow.cluster import SETTINGS, Cluster
from drivelab.workflow.failures import explain
from drivelab.workflow.scheduling import Scheduling

_POLL_S = 0.5
_RELEASE_S = 30.0
"""Longest time that a terminated stage may take to release its drive."""


@dataclass(frozen=True)
class _Engine:
    """How Snakemake runs a study."""

    study: Path
    cores: int
    profile: Path | None
    submission: cluster.Submission | None
    """Set if jobs run on a cluster."""


def run_study(path: Path, cores: int, yes: bool, profile: Path | None = None, when_busy: str = CONTINUE) -> int:
    """Run the unfinished part of a study; return 0 if all is up to date, 1 if something failed or data is wrong.

    With the `profile` of a cluster, jobs run on the hosts that hold the drives. Raises UserError before any change if
    the configuration is invalid or consent is missing. `when_busy` is one of `drivelab.cli.measure.run.WHEN_BUSY`.
    """
    hosts = Cluster.of_profile(profile) if profile else None
    campaign = Campaign.load(path, everywhere=hosts is not None)
    study = campaign.study
    refuse_foreign(study)
    require_writable(study.results)
    lock = hold(study.results, study.name) if study.results.is_dir() else None
    began = False
    try:
        if lock is not None:
            set_torn_aside(campaign)
        submission = None
        if profile is not None and hosts is not None:
            scheduling, submission = Scheduling(campaign, hosts), cluster.Submission(profile, campaign)
            if submission.is_slurm:
                scheduling.refuse_in_slurm(submission.partition)
        _show_and_agree(campaign, yes, _check(campaign))
        if profile is None and not settle(campaign, when_busy):
            print("Stopped. Nothing was measured.")
            return 1
        (study.results / "logs").mkdir(parents=True, exist_ok=True)
        lock = lock or hold(study.results, study.name)
        if lock is not None and lock.interrupted:
            print("The last run was interrupted. Continuing where it stopped.")
        began, started_s, engine = True, time.monotonic(), _Engine(path, cores, profile, submission)
        with _host_settings(campaign):
            complete = _run(campaign, engine)
            while complete and (grown := _grown(campaign, path)) is not None:
                campaign = grown
                complete = _run(campaign, engine)
    finally:
        if lock is not None:
            lock.ended_in_order(began=began)
    if not complete:
        return 1
    _print_result(campaign, time.monotonic() - started_s)
    return 0


def _run(campaign: Campaign, engine: _Engine) -> bool:
    """Run what is unfinished, and return whether all of it succeeded; say why not."""
    say(*(engine.submission.clear_queue() if engine.submission else ()), headline(campaign))
    logs, status = campaign.study.results / "logs", None
    try:
        status = _snakemake(campaign, engine, logs / "snakemake.log")
    finally:
        ended = status is not None and status >= 0  # else stages may still be releasing drives
        kept = None if status == 0 else campaign.study.results / KEPT_DRIVES
        _release(campaign.virtual_drives, kept, 0 if ended else _RELEASE_S)
    complete = status == 0 and (campaign.study.results / "report/index.html").exists()
    if not complete:
        explain(logs, status)
        recorded = [is_recorded(planned.plan) for planned in campaign.plans]
        if status > 0 and any(recorded) and not all(recorded):
            _report_existing(campaign, engine)
    return complete


def _report_existing(campaign: Campaign, engine: _Engine) -> None:
    """Analyse and report on this host what was measured before a failure, and say where the report is."""
    from drivelab.report.headline import left_out_words  # imports pandas, which is slow

    log, more = campaign.study.results / "logs/snakemake_existing.log", ["--config", "report=existing"]
    if engine.submission is not None and engine.profile is not None:
        more = ["--configfile", str(engine.profile / SETTINGS), *more]
        engine = replace(engine, profile=None, submission=None)
    if _snakemake(campaign, engine, log, more) == 0:
        say(f"Report of what was measured: {campaign.study.results / 'report/index.html'}")
        say(left_out_words(campaign.study.results / "tables/exclusions.parquet"))
    else:
        say(f"What was measured could not be reported either. Log: {log}")


def _check(campaign: Campaign) -> dict[str, ApprovedDevice]:
    """Return the drives to measure here; raises UserError if the study may not run, before anything is touched.

    What a killed measurement left mounted is unmounted first, because the guard refuses a mounted drive.
    """
    refuse_foreign_campaign(campaign)
    recover_mounts()
    check_engines(plan for plan in campaign.to_do if host_of(plan) == this_host() or not campaign.everywhere)
    return campaign.approve_drives()


def _grown(campaign: Campaign, path: Path) -> Campaign | None:
    """Look at the comparisons of a growing study; return it with more runs, or None at its end. Say why."""
    study = campaign.study
    if study.growth is None:
        return None
    if campaign.elsewhere:
        say("Other hosts still have to measure. The analysis runs when all recordings are here.")
        return None
    from drivelab.campaign import growth as growth_looks  # imports scipy, which is slow

    growth, found = growth_looks.look(study, study.growth, growth_looks.headline_rows(campaign))
    say(*found)
    if growth is None:
        return None
    grown = Campaign.load(path, everywhere=campaign.everywhere, growth=growth)
    if excesses := exceeded(grown, outlook(grown)):  # the budget ends the study in order
        say(f"No run is added: {'; '.join(excesses)}.")
        return None
    _check(grown)
    write_json(study.results / LOOKS, growth.to_mapping())  # from which the next run of the study plans
    return grown


def _show_and_agree(campaign: Campaign, yes: bool, approved: Mapping[str, ApprovedDevice]) -> None:
    """Show which real drives are about to be erased and require consent; raises UserError if over budget."""
    prospects = outlook(campaign)
    require_within(campaign, prospects)
    rows = [row for row in prospects if row.destroys and row.to_do]
    for row in rows:
        print("\n".join(row.lines()), flush=True)
    if (growth := growth_lines(campaign)) and rows:
        print("\n".join(growth), flush=True)
    identities = {drive: device.identity for drive, device in approved.items()}
    drives = [consent.Drive(row.drive, row.serial, identities.get(row.drive), tuple(row.by_host)) for row in rows]
    consent.require(campaign.study, drives, yes)


@contextmanager
def _host_settings(campaign: Campaign) -> Iterator[None]:
    """Restore settings that killed runs left changed; apply the study's host settings while it runs."""
    say(*recover_all())
    if not campaign.needs_fio or campaign.everywhere:
        yield
        return
    change = campaign.study.host_settings == "apply"  # such a study has a single scenario
    with for_study(campaign.scenarios[0], campaign.real_drives(), change=change, say=say):
        yield


def _snakemake(campaign: Campaign, engine: _Engine, log: Path, more: Sequence[str] = ("--config",)) -> int:
    """Run Snakemake and return its exit status. Snakemake ends when this process is killed.

    Snakemake and its jobs share a process group: a signal to this process alone must reach the stages too, or Snakemake
    waits for them to finish.
    """
    submission, environment = engine.submission, _environment()
    if submission is not None:
        arguments, environment = submission.arguments(engine.cores), submission.environment(environment)
    else:
        profile = [] if engine.profile is None else ["--profile", str(engine.profile)]
        arguments = ["--cores", str(engine.cores), *profile]
    # A background job of a script inherits an ignored SIGINT, but SIGINT ends Snakemake below.
    # These are also in profiles/default, of which a project may have an old copy.
    always = ["--rerun-triggers", "mtime", "params", "--ignore-incomplete", "--nolock", "--nocolor"]
    command = ["env", "--default-signal=INT", *programs.python("-m", "snakemake"), *snakemake_arguments(), *arguments,
               *always, *more, f"study={engine.study}"]  # fmt: skip
    view = ProgressView(campaign)
    with log.open("w") as output:
        process = programs.start(command, stdout=output, stderr=subprocess.STDOUT, env=environment, process_group=0)
        try:
            with live_display() as live:
                while process.poll() is None:
                    view.update(live)
                    say(*(submission.missed(time.monotonic()) if submission else ()))
                    time.sleep(_POLL_S)
        except BaseException:
            messages = submission.cancel() if submission else []
            # On SIGTERM Snakemake waits for jobs on other hosts to finish.
            os.killpg(process.pid, signal.SIGINT if submission else signal.SIGTERM)
            process.wait()
            messages += submission.cancel() if submission else []  # jobs submitted meanwhile
            say(*dict.fromkeys(messages))
            raise
    return process.returncode


def _environment() -> dict[str, str]:
    """Return the environment for Snakemake, with the interpreter's folder on PATH: rules call `drivelab` by name.

    Snakemake needs a user name, which a user id of a container may lack.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return {
        **os.environ,
        "LOGNAME": user,
        VARIABLE: str(ROOT),
        **programs.SAFE_PATH,
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
    }


def _release(names: list[str], keep: Path | None, patience_s: float) -> None:
    """Stop the study's virtual drives that no other process uses, also after a killed Snakemake.

    `keep` is the folder for their state, with which the next run continues; None discards it.
    """
    deadline_s = time.monotonic() + patience_s
    for name in names:
        while (used := in_use(name)) and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        if used:
            continue
        try:
            manage.stop(name, keep=keep)
        except UserError as error:
            if in_use(name):  # since a moment ago
                continue
            say(f"the state of virtual drive '{name}' is lost; its interrupted measurement will restart ({error})")
            with suppress(UserError):
                manage.stop(name)


def _print_result(campaign: Campaign, seconds: float) -> None:
    from drivelab.report.headline import first_headlines, headline_inputs, left_out_words

    shown = campaign.study.results if restored_folder(Path.cwd()) is None else campaign.study.results.resolve()
    say(f"Done in {format_duration(seconds)}. Report: {shown / 'report/index.html'}")
    tables = campaign.study.results / "tables"
    recordings = [planned.plan.recording for planned in campaign.plans]
    headlines = first_headlines(headline_inputs(tables, recordings, campaign.study.basis))
    level = broken_level(looks(campaign.study))
    warning = [f"warning: {level}"] if level else []
    say(*(f"  {line}" for line in headlines), left_out_words(tables / "exclusions.parquet"), *warning)


_QUESTION = "Wait until the machine is idle (w), continue now (c), or stop (s)? [w] "


def settle(campaign: Campaign, when_busy: str, look: Callable[[Sequence[str]], tuple[str, ...]] = disturbances) -> bool:
    """Return whether to start a study now, after waiting if the user wants that.

    Looks at the CPUs and at the drives for a second, if anything is left to measure here in real time. With
    `when_busy` ASK the user chooses; without a terminal the study continues, and disturbed cells become tainted.
    """
    rows = {plan.sheet_drive: campaign.sheet[plan.sheet_drive] for plan in campaign.to_do if plan.clock == "wall"}
    if not rows:
        return True
    devices = (Path(row.device) for row in rows.values() if row.virtual is None)
    names = [name for device in devices if device.exists() for name in disks(layers(device))]
    found = look(names)
    if not found:
        return True
    say(f"warning: {'; '.join(found)}", stderr=True)
    choice = when_busy
    if choice == ASK:
        choice = _answer() if sys.stdin.isatty() and sys.stderr.isatty() else CONTINUE
    if choice == WAIT:
        say("Waiting until the machine is idle. Ctrl-C stops.", stderr=True)
        while look(names):
            pass
        say("The machine is idle now.", stderr=True)
    elif choice == CONTINUE:
        say("Continuing: what is disturbed is measured again if the load passes, or marked as tainted.", stderr=True)
    return choice in (WAIT, CONTINUE)


def _answer() -> str:
    print(_QUESTION, end="", file=sys.stderr, flush=True)
    answers = {"\n": WAIT, "w": WAIT, "c": CONTINUE}
    return answers.get(sys.stdin.readline().lower()[:1], "stop")
