#!/bin/sh
# Check out an old commit of a git repository, search it, and return to the new commit. Argument: the repository.
set -e
cd "$1"
git checkout --quiet old
sync --file-system .
git status --short
git grep --count 'ab' | wc -l
git checkout --quiet new
git log --oneline --stat -n 30 | wc -l
sync --file-system .
