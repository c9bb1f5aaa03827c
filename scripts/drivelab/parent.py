"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import os

_STILL_THERE = 'test "$PPID" = "$0" && exec "$@"'


def ending_with_parent(signal: str) -> list[str]:
    """What goes before a command so that it gets the signal, `TERM` or `KILL`, when this process dies.

    setpriv(1) asks the kernel for it (prctl(2), PR_SET_PDEATHSIG; it is kept by what is executed then), which costs
    less than running Python code between fork and exec. A parent that had died before that is noticed by the shell
    after it: without, the command would wait for the end of whoever took the parent's place. The signal comes with the
    end of the *thread* that started the command.
    """
    return ["setpriv", "--pdeathsig", signal, "sh", "-c", _STILL_THERE, str(os.getpid())]
