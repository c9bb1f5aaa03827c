#!/bin/sh
# Work in a git repository: an old state is checked out, searched, and left for the new one again. Argument: its folder.
set -e
cd "$1"
git checkout --quiet old
sync --file-system .
git status --short
git grep --count 'ab' | wc -l
git checkout --quiet new
git log --oneline --stat -n 30 | wc -l
sync --file-system .
