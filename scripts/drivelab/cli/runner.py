"""Runs Snakemake for a study, shows what happens, clears up after a crash, and ends with the result."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from drivelab.cli.progress_view import ProgressView
from drivelab.errors import UserError
from drivelab.fio.run import fio_version
from drivelab.stages.layout import Layout
from drivelab.stages.outlook import outlook, require_consent
from drivelab.stages.planning import Campaign
from drivelab.units import format_duration

_POLL_S = 0.5


def run_study(path: Path, cores: int, yes: bool) -> int:
    """Run what is left of a study; returns 0 when all is done and up to date, 1 when something failed.

    Raises UserError before anything is touched when the configuration does not hold.
    """
    campaign = Campaign.load(path)
    layout = Layout(campaign)
    layout.check_owner()
    if campaign.needs_fio:
        fio_version()
    campaign.approve_drives()
    _show_and_agree(campaign, yes)
    logs = campaign.study.results / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with (campaign.study.results / ".run.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"study '{campaign.study.name}' is being run already; wait for it, or end it first"
            ) from None
        _unlock()
        print(campaign.headline(), flush=True)
        started_s = time.monotonic()
        status = _snakemake(campaign, path, cores, logs / "snakemake.log")
    if status != 0:
        _explain(logs, started_s)
        return 1
    _result(campaign, time.monotonic() - started_s)
    return 0


def _show_and_agree(campaign: Campaign, yes: bool) -> None:
    """What is about to be lost, for real drives that this study has not destroyed data on before."""
    rows = outlook(campaign)
    if any(not row.virtual and row.to_do for row in rows):
        for row in rows:
            print("\n".join(row.lines()), flush=True)
    require_consent(campaign, rows, yes)


def _unlock() -> None:
    """Remove the lock that a killed Snakemake left, after making sure that none is at work here."""
    locks = Path(".snakemake/locks")
    if not locks.is_dir() or not any(locks.iterdir()):
        return
    if (pid := _other_snakemake()) is not None:
        raise UserError(f"Snakemake (process {pid}) is at work in this folder; wait for it to end, or end it")
    subprocess.run([sys.executable, "-m", "snakemake", "--unlock", "--cores", "1"], check=True, capture_output=True)
    print("The last run was cut short; going on where it stopped.")


def _other_snakemake() -> int | None:
    here = Path.cwd()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
            if any(Path(os.fsdecode(w)).name == "snakemake" for w in words) and (directory / "cwd").resolve() == here:
                return int(directory.name)
        except OSError:
            continue
    return None


def _snakemake(campaign: Campaign, path: Path, cores: int, log: Path) -> int:
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        str(cores),
        "--config",
        f"study={path}",
        "--nocolor",
    ]
    view = ProgressView(campaign)
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=_environment()
        )
        try:
            with view:
                while process.poll() is None:
                    view.update()
                    time.sleep(_POLL_S)
        except BaseException:
            process.send_signal(signal.SIGTERM)
            process.wait()
            raise
    return process.returncode


def _environment() -> dict[str, str]:
    """Rules call `drivelab` by name: it is beside the interpreter, also where nobody activated the environment."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"}


def _explain(logs: Path, started_s: float) -> None:
    """The sentences with which stages failed; else where to look."""
    began = time.time() - (time.monotonic() - started_s)
    recent = [log for log in sorted(logs.glob("*/**/*.log")) if log.stat().st_mtime >= began]
    lines = [line for log in recent for line in log.read_text(errors="replace").splitlines()]
    sentences = [line for line in lines if line.startswith("drivelab: ")]
    if sentences:
        print("\n".join(sentences), file=sys.stderr)
    else:
        tail = (logs / "snakemake.log").read_text(errors="replace").splitlines()[-25:]
        print("\n".join(tail), file=sys.stderr)
    print(
        f"drivelab: the study is not complete; what is finished is kept. Log: {logs}/snakemake.log",
        file=sys.stderr,
    )


def _result(campaign: Campaign, seconds: float) -> None:
    from drivelab.report.headline import first_headlines

    print(f"Done in {format_duration(seconds)}. Report: {campaign.study.results / 'report/index.html'}")
    tables = campaign.study.results / "tables"
    recorded = [tables / one.plan.recording for one in campaign.plans]
    paths: dict[str, Path | list[Path]] = {
        "summary": tables / "summary.parquet",
        "deltas": tables / "deltas.parquet",
        "steady_state": [folder / "steady_state.parquet" for folder in recorded],
        "replays": [folder / "replays.parquet" for folder in recorded],
    }
    for line in first_headlines(paths, campaign.study.basis):
        print(f"  {line}")
