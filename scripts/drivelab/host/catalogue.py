"""List all host settings in the order of reports.

To add a setting, add an entry to a module below. The entries translate the tables of the Solidigm Performance
Evaluation Guide, August 2022, revision 001, sections 3.4.4 (BIOS), 3.4.5 (operating system) and 3.4.6 (power) to Linux,
row by row. Each entry names its row. Rows without a counterpart that could affect a drive are left out: restarted
applications, screen, brightness, screen saver, visual effects, desktop background, JavaScript timers, wireless and
graphics power, buttons, wake timers, cooling policy.
"""

from __future__ import annotations

from drivelab.host import catalogue_cpu, catalogue_drive, catalogue_power, catalogue_services
from drivelab.host.entry import Setting

CATALOGUE: tuple[Setting, ...] = (
    *catalogue_cpu.SETTINGS,
    *catalogue_power.SETTINGS,
    *catalogue_services.SETTINGS,
    *catalogue_drive.SETTINGS,
)
