"""Look at the machine before a measurement in real time starts: what disturbs it, and whether to wait."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from drivelab.campaign.planning import Campaign
from drivelab.cli.measure.run import ASK, CONTINUE, WAIT
from drivelab.host.stack.stack import disks, layers
from drivelab.quick.caveats import Cause, disturbances, warnings

_QUESTION = "Wait until the machine is idle (w), continue now (c), or stop (s)? [w] "


def settle(
    campaign: Campaign, when_busy: str, look: Callable[[Sequence[str]], tuple[Cause, ...]] = disturbances
) -> bool:
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
    for sentence in warnings(found):
        _say(f"warning: {sentence}")
    choice = when_busy
    if choice == ASK:
        choice = _answer() if sys.stdin.isatty() and sys.stderr.isatty() else CONTINUE
    if choice == WAIT:
        _say("Waiting until the machine is idle. Ctrl-C stops.")
        while look(names):
            pass
        _say("The machine is idle now.")
    elif choice == CONTINUE:
        _say("Continuing: what is disturbed is measured again if the load passes, or marked as tainted.")
    return choice in (WAIT, CONTINUE)


def _answer() -> str:
    print(_QUESTION, end="", file=sys.stderr, flush=True)
    answers = {"\n": WAIT, "w": WAIT, "c": CONTINUE}
    return answers.get(sys.stdin.readline().lower()[:1], "stop")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
