"""Write a C project to compile: small modules with headers, and a makefile.

The same seed gives the same sources.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

MODULES = 200
FUNCTIONS = 12
INCLUDES = 6
MAKEFILE = """\
CC = cc
CFLAGS = -O0 -g -pipe
OBJECTS := $(patsubst %.c,%.o,$(wildcard src/*.c))

program: $(OBJECTS)
\t$(CC) -o $@ $(OBJECTS)

src/%.o: src/%.c
\t$(CC) $(CFLAGS) -Iinclude -c -o $@ $<
"""


def main(folder: Path) -> None:
    """Write the project to `folder`."""
    dice = random.Random(20240504)
    (folder / "src").mkdir(parents=True)
    (folder / "include").mkdir()
    (folder / "Makefile").write_text(MAKEFILE)
    for module in range(MODULES):
        names = [f"m{module}_f{index}" for index in range(FUNCTIONS)]
        header = "".join(f"int {name}(int value, const int *table, int count);\n" for name in names)
        (folder / "include" / f"m{module}.h").write_text(f"#pragma once\n{header}")
        (folder / "src" / f"m{module}.c").write_text(_module(dice, module, names))
    calls = "".join(f"    total += m{module}_f0(argc, table, 2);\n" for module in range(MODULES))
    includes = "".join(f'#include "m{module}.h"\n' for module in range(MODULES))
    (folder / "src" / "main.c").write_text(
        f"{includes}\nint main(int argc, char **argv)\n{{\n    int total = 0, table[2] = {{1, 2}};\n    (void)argv;\n"
        f"{calls}    return total == 0;\n}}\n"
    )


def _module(dice: random.Random, module: int, names: list[str]) -> str:
    """Return a module's source; it calls only earlier modules, to avoid recursion."""
    others = sorted(dice.sample(range(module), min(INCLUDES, module)))
    lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>", f'#include "m{module}.h"']
    lines += [f'#include "m{other}.h"' for other in others]
    for name in names:
        call = f"m{dice.choice(others)}_f{dice.randrange(FUNCTIONS)}(value, table, count)" if others else "value"
        lines += [
            "", f"int {name}(int value, const int *table, int count)", "{", f"    int sum = {dice.randrange(1000)};",
            "    for (int i = 0; i < count; i++)",
            f"        sum += (table[i] ^ {dice.randrange(1 << 16)}) * (value + i % {dice.randint(2, 60)});",
            f"    if (sum == {dice.randrange(1 << 20)})", f'        printf("{name} %d\\n", sum);',
            f"    return sum > {dice.randrange(1 << 24)} ? {call} : sum;", "}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
