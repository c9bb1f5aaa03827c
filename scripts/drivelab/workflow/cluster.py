"""A cluster as a profile describes it: how each job gets to the host of its drive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from drivelab.campaign.planning import Campaign
from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.plan.hosts import host_of
from drivelab.plan.plan import Plan
from drivelab.plan.study import ANY_HOST
from drivelab.plan.yaml_file import load_yaml

SETTINGS = "cluster.yaml"
"""File that makes a profile a cluster's profile: a Snakemake configuration with the key `cluster`."""


@dataclass(frozen=True)
class Cluster:
    """Key `cluster`. In texts `{drive}` and `{host}` stand for names of the drive sheet, `{latest_min}` for minutes."""

    gres: str = ""
    """Generic resource that a chain takes, for example `nvme:{drive}:1`; hyphens in drive names become underscores."""
    options: str = ""
    """More options of sbatch; an option with `{host}` is omitted for a drive without a host."""
    cpus_per_task: int = -1
    """CPUs of a measuring job; -1 leaves it to the options, such as `--exclusive`."""
    wait_min: int = 1440
    """Minutes that a chain may wait for its host: `{latest_min}` is this plus the wall time."""

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> Cluster:
        """Return the settings of a mapping; raises UserError for an unknown key or a wrong type."""
        types = {field.name: type(field.default) for field in fields(cls)}
        for key, value in body.items():
            if key not in types:
                raise UserError(f"{SETTINGS}: there is no key 'cluster.{key}'; the keys are: {', '.join(types)}")
            if type(value) is not types[key]:
                raise UserError(f"{SETTINGS}: key 'cluster.{key}' is {value!r}; give a {types[key].__name__}")
        return cls(**body)

    @classmethod
    def of_profile(cls, profile: Path) -> Cluster | None:
        """Return the cluster of a Snakemake profile; None if the profile has no cluster."""
        path = profile / SETTINGS
        return cls.from_mapping(load_yaml(path)["cluster"]) if path.exists() else None

    def gres_of(self, plan: Plan) -> str:
        """Return the drive of a plan as Slurm's generic resource; empty if the cluster has none.

        Empty for simultaneous drives, too, as a job can name only one drive.
        """
        if "simultaneous" in plan.subject:
            return ""
        return self.gres.format(drive=plan.sheet_drive.replace("-", "_"), host=host_of(plan))

    def extra_of(self, plan: Plan, walltime_min: int) -> str:
        """Return the options of sbatch for the chain of a plan.

        An option with the host comes last: the executor takes a name such as `rack-c`, followed by a space, for an
        option of its own (`-c`), and the job would never be submitted.
        """
        options = sorted(self.options.split(), key=lambda option: "{host}" in option)
        if host_of(plan) == ANY_HOST:
            options = [option for option in options if "{host}" not in option]
        return " ".join(options).format(
            drive=plan.sheet_drive, host=host_of(plan), latest_min=walltime_min + self.wait_min
        )

    def refuse(self, campaign: Campaign) -> None:
        """Raise UserError for the first setting of a study that does not work with jobs on other hosts."""
        study = campaign.study
        for plan in campaign.here:
            if plan.virtual and study.clock != "virtual":
                raise UserError(
                    f"{study.path}: drive '{plan.drive}' is a virtual drive in real time, which ends with the job that "
                    "starts it; on a cluster set 'clock: virtual' in the study"
                )
            if not plan.virtual and host_of(plan) == ANY_HOST:
                raise UserError(
                    f"{study.drives_sheet}: drive '{plan.sheet_drive}' has no 'host'; on a cluster enter the name of "
                    "the node that holds the drive"
                )
        if study.host_settings == "apply" and campaign.needs_fio:
            raise UserError(
                f"{study.path}: key 'host_settings' is apply, which changes only the host that starts the study; "
                "on a cluster use 'check', and set up the hosts beforehand"
            )
        captured = [name for name, trace in study.traces.items() if trace.capture and study.clock != "virtual"]
        if captured:
            raise UserError(
                f"{study.path}: trace '{captured[0]}' would be captured on an arbitrary host; on a cluster "
                "capture it beforehand ('drivelab trace capture') and name its file"
            )
        for plans in campaign.together.values():
            hosts = {host_of(plan) for plan in plans}
            if len(hosts) > 1:
                raise UserError(
                    f"{study.path}: the drives {', '.join(plan.sheet_drive for plan in plans)} are to be measured at "
                    f"the same time, but are attached to {', '.join(sorted(hosts))}; attach them to one host, or "
                    "measure each alone"
                )


_SINFO = ("sinfo", "--noheader", "--Node", "--format", "%N|%P|%l")


def slurm_limits_min(partition: str | None) -> dict[str, float]:
    """Return the longest wall time of a job on each of Slurm's hosts, in minutes; empty if there is no Slurm.

    It is that of `partition`, of Slurm's default if that is empty, or without it of any: 0 on a host outside of it.
    """
    limits_min: dict[str, float] = {}
    try:
        lines = programs.run(_SINFO).stdout.splitlines()
    except FileNotFoundError:
        return limits_min
    for host, name, limit in (line.split("|") for line in lines):
        is_meant = partition is None or (name.rstrip("*") in partition.split(",") if partition else name.endswith("*"))
        limits_min[host] = max(limits_min.get(host, 0.0), _minutes(limit) if is_meant else 0.0)
    return limits_min


def _minutes(limit: str) -> float:
    """Return the minutes of `infinite`, `DAYS-HH:MM:SS`, `HH:MM:SS` or `MM:SS`."""
    if not limit[:1].isdigit():
        return math.inf
    days, _, clock = limit.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return 1440 * int(days or 0) + seconds / 60
