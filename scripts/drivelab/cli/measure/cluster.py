"""Submit the jobs of a study to a cluster: what `drivelab run --profile` does differently."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from drivelab.campaign.planning import Campaign
from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.plan.places import IS_INSTALLED
from drivelab.plan.yaml_file import load_yaml

_PACKAGES = Path(sys.prefix) / "cluster"
"""Where './drivelab setup cluster' installs the executor, apart from the environment of local studies."""
_EXECUTOR = "snakemake_executor_plugin_slurm"
_CHAIN = "rule_chain_"
"""Prefix of the comment of a submission that uses a drive."""
_LOOK_S, _IDLE_S = 60.0, 600.0  # between two looks at the queue; without a job in it
_SQUEUE = ("squeue", "--me", "--noheader", "--format", "%i|%T|%j|%Z|%k")


class Submission:
    """Snakemake with the profile of a cluster."""

    def __init__(self, profile: Path, campaign: Campaign) -> None:
        """Raises UserError if the profile is invalid or its executor is not installed."""
        settings = load_yaml(profile / "config.yaml")
        self.is_slurm = settings.get("executor") == "slurm"
        if self.is_slurm and not (_PACKAGES / "stamp").exists() and find_spec(_EXECUTOR) is None:
            remedy = "install 'drivelab[slurm]' with pip" if IS_INSTALLED else "run './drivelab setup cluster'"
            raise UserError(f"{profile}: the packages that submit jobs to Slurm are not installed; {remedy}")
        self._profile = profile
        defaults = settings.get("default-resources", {})
        is_plain = isinstance(defaults, Mapping) and "set-resources" not in settings
        self.partition = str(defaults.get("slurm_partition", "")) if is_plain else None
        """Partition of all jobs, "" for Slurm's default; None if jobs differ."""
        # Part of each Slurm job's name: it identifies the jobs that a killed run left.
        self._prefix = f"drivelab-{re.sub('[^A-Za-z0-9-]', '-', campaign.study.name)}"[:50]
        self._looked_s, self._empty_since_s = -math.inf, math.inf

    def arguments(self, cores: int) -> list[str]:
        """Return arguments for snakemake; `cores` limits the jobs that run on this host."""
        named = ["--slurm-jobname-prefix", self._prefix] if self.is_slurm else []
        return ["--profile", str(self._profile), "--local-cores", str(cores), *named]

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with the executor's packages on PYTHONPATH."""
        before = environment.get("PYTHONPATH")
        return {**environment, "PYTHONPATH": f"{_PACKAGES}:{before}" if before else str(_PACKAGES)}

    def clear_queue(self) -> list[str]:
        """Cancel the jobs that a killed run left in the queue, except running chains; return sentences that say so.

        Two analyses of one recording would write the same files. A chain that has not started is submitted again.
        """
        jobs = self._queue()
        at_work = [job for job, is_at_work in jobs.items() if is_at_work]
        others = [job for job in jobs if job not in at_work]
        sentences = []
        if others:
            programs.run(["scancel", *others])
            sentences.append(f"A killed run left jobs in the queue; cancelled: jobs {', '.join(others)}.")
        if at_work:
            sentences.append(f"Jobs of a killed run are still running; waiting for: jobs {', '.join(at_work)}.")
        return sentences

    def cancel(self) -> list[str]:
        """Cancel all jobs of this run, running chains included; return a sentence that says so.

        An interrupted Snakemake does not cancel the jobs whose state it is querying at that moment.
        """
        try:
            jobs = list(self._queue())
        except UserError as error:
            return [f"The jobs in the queue were not cancelled: {error}"]
        if not jobs:
            return []
        programs.run(["scancel", *jobs])
        return [f"Cancelled in Slurm: jobs {', '.join(jobs)}."]

    def missed(self, now_s: float) -> list[str]:
        """Return a sentence, once, when Slurm has had no job of this run for ten minutes at `now_s`.

        The executor waits for ever for a job whose end it missed while Slurm did not answer in time: Slurm forgets it.
        """
        if not self.is_slurm or now_s - self._looked_s < _LOOK_S:
            return []
        self._looked_s = now_s
        try:
            is_empty = not self._queue()
        except UserError:
            return []
        self._empty_since_s = min(self._empty_since_s, now_s) if is_empty else math.inf
        if now_s - self._empty_since_s < _IDLE_S:
            return []
        self._looked_s = math.inf
        return [
            "Slurm has had no job of this study for ten minutes. Unless this host captures a trace, Snakemake missed "
            "the end of a job. Press Ctrl-C and run again: what is finished is kept."
        ]

    def _queue(self) -> dict[str, bool]:
        """Return the unfinished jobs of the study, and whether each is a running chain.

        Raises UserError if Slurm does not answer.
        """
        if not self.is_slurm:
            return {}
        done = programs.run(_SQUEUE)
        if done.returncode != 0:
            message = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise UserError(
                f"Slurm does not answer ({message}); check that 'squeue' works on this host, then run again"
            )
        jobs = {}
        for line in done.stdout.splitlines():
            job, state, name, folder, comment = line.split("|", 4)
            ours = re.fullmatch(rf"{self._prefix}_[0-9a-f-]{{36}}", name) and Path(folder) == Path.cwd()
            if ours and state != "COMPLETING":
                jobs[job] = comment.startswith(_CHAIN) and state == "RUNNING"
        return jobs
