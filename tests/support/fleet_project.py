"""A fleet study of many virtual drives on the virtual clock, in a copy of the project."""

from __future__ import annotations

from pathlib import Path

from mini_project import Project

STUDY = """\
name: fleet
title: A fleet of virtual drives
results: results
clock: virtual
concurrency: 2
fleet: true
drives_sheet: config/fleet.tsv
drives: [{drives}]
measurements:
  - protocol: pts-iops
    scale: demo
    set:
      loop:
        runtime: 100ms
        cells: {{read_share: [0], block_size: [4KiB]}}
        until: {{steady_state: {{track: [{{read_share: 0, block_size: 4KiB, metric: iops}}]}}}}
  - protocol: pts-write-saturation
    scale: demo
    set: {{soak: {{slice: 1s, until: {{time: 5s}}}}}}
"""


MODEL = """\
{name}:
  serial: FLEET-{name}
  capacity: 64MiB
  over_provisioning: 7%
  pages_per_block: 64
  dies: 4
  read_us: 100
  program_us: {program_us}
  erase_us: 1000
  copy_us: 230
  command_us: 85
  transfer_us: 20
  slc_cache: 48MiB
  slc_program_us: 150
  write_buffer: 256KiB
  idle_after_us: 5000000
"""


class FleetProject(Project):
    """The project, with access to the results of its drives."""

    @property
    def parts(self) -> Path:
        """Results folder of the drives."""
        return self.folder / "results/drives"

    def outcomes(self) -> dict[str, str]:
        """Return the name of each drive's outcome file."""
        return {path.parent.name: path.name for path in self.parts.glob("*/outcome.*.json")}

    def evidence(self) -> dict[str, int]:
        """Return the modification time (ns) of each finished recording's manifest, by drive and run, as d1/run1."""
        paths = self.parts.glob("*/recordings/*/*/*/recording.json")
        return {
            f"{path.parents[2].name}/{path.parent.name.rpartition('-')[2]}": path.stat().st_mtime_ns for path in paths
        }


def fleet_project(folder: Path, count: int, slow: int | None = None) -> FleetProject:
    """Return the project with a study config/mini.yaml of drives d1, d2 …, whose flash differs by about 1 %.

    The flash of drive number `slow`, from 1, takes twice as long to write.
    """
    project = FleetProject(folder)
    names = [f"d{number}" for number in range(1, count + 1)]
    rows = [f"{name}\tvirtual:{name}\tFLEET-{name}\tyes\t" for name in names]
    (project.folder / "config/fleet.tsv").write_text("\n".join(["drive\tdevice\tserial\tdestructive\tnote", *rows, ""]))
    models = [
        MODEL.format(name=name, program_us=1360 if number == slow else 680 + (7 * number) % 20)
        for number, name in enumerate(names, start=1)
    ]
    (project.folder / "config/virtual_drives.yaml").write_text("".join(models))
    (project.folder / "config/mini.yaml").write_text(STUDY.format(drives=", ".join(names)))
    return project
