#!/usr/bin/env bash
# Check that a new machine gets from a clone to a report. Makes minimal Debian systems with only git added,
# clones the present commit into each, and runs the commands of README there.
#
#   run.sh [RELEASE ...]      default: bookworm trixie (Debian 12 and 13); needs root
#
# The kernel, its block devices and its network are this machine's, as are the settings and certificates for package
# downloads. Logs, the bare systems and pip's downloads stay in ~/.cache/drivelab/fresh; the used systems are removed.
set -uo pipefail
shopt -s nullglob

cache=${XDG_CACHE_HOME:-$HOME/.cache}/drivelab/fresh
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
tree=$cache/system # one at a time
failed_lines=$([[ -n ${CI-} ]] && echo 400 || echo 40)

fail() {
    printf 'drivelab test fresh: %s\n' "$*" >&2
    exit 1
}

# --- find and remove a system

mounts() { awk -v tree="$tree" '$2 == tree || index($2, tree "/") == 1 { print $2 }' /proc/mounts; }

loop_devices() {
    local file
    for file in /sys/block/loop*/loop/backing_file; do
        [[ $(cat "$file" 2>/dev/null) == "$tree"/* ]] && printf '/dev/%s\n' "$(cut -d/ -f4 <<<"$file")"
    done
}

processes() {
    local root
    for root in /proc/[0-9]*/root; do
        [[ $(readlink "$root") == "$tree" ]] && cut -d/ -f3 <<<"$root"
    done
}

remove_system() {
    local found
    for found in $(processes); do kill -KILL "$found"; done 2>/dev/null
    for found in $(loop_devices); do losetup --detach "$found"; done
    # Latest first; lazily, because a killed process may not have ended yet.
    mounts | tac | while read -r found; do umount --lazy "$(printf %b "$found")"; done
    [[ -z $(mounts) ]] || fail "cannot unmount the file systems in $tree."
    rm -rf --one-file-system "$tree"
}

# --- a minimal system

# shellcheck disable=SC2016 # apt's variables
mirror() { # this machine's Debian mirror; empty on other systems, where debootstrap uses its default
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Identifier: Packages' 2>/dev/null |
        awk '$2 !~ /-/ && $3 == "main" && $4 == "Debian" { print $1; exit }'
}

make_bare_system() {
    local bare=$cache/$release.tar.gz
    if [[ -z $(find "$bare" -mtime -30 2>/dev/null) ]]; then
        # shellcheck disable=SC2046 # no argument without a mirror
        debootstrap --variant=minbase --include=git "$release" "$tree" $(mirror) &&
            chroot "$tree" apt-get clean &&
            tar -C "$tree" -czf "$bare.part" . && mv "$bare.part" "$bare"
    else
        mkdir -p "$tree" && tar -C "$tree" -xpzf "$bare"
    fi
}

passed_on() { # the environment for package downloads, as NAME=value
    local name
    for name in $(compgen -e | grep -E '^(PIP_.*|.*_proxy|.*_PROXY|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$'); do
        printf '%s\n' "$name=${!name}"
    done
}

connect() { # names, package managers' settings, certificates
    local file
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf ~/.config/pip/pip.conf ~/.pip/pip.conf \
        /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates/*.crt $(passed_on | cut -d= -f2-); do
        [[ ! -f $file ]] || install -D -m 644 "$file" "$tree${file/#$HOME//root}" || return
    done
    apt-config dump 2>/dev/null | grep -E '^Acquire::https?::' >"$tree/etc/apt/apt.conf.d/99host"
    mkdir -p "$cache/pip" "$tree/root/.cache/pip"
}

mount_kernel() {
    mount --bind "$tree" "$tree" && # the root of a system is a mount point
        mount --make-private "$tree" &&
        mount -t proc proc "$tree/proc" &&
        mount -t sysfs sysfs "$tree/sys" &&
        mount --bind /dev "$tree/dev" &&
        mount --make-private "$tree/dev" && # else the next two mounts would appear on this machine too
        mount --bind /dev/pts "$tree/dev/pts" &&
        mount -t tmpfs tmpfs "$tree/dev/shm" &&
        mount --bind "$cache/pip" "$tree/root/.cache/pip" || return
    # As systemd does, if the kernel has them. The kernel also mounts tracefs below debugfs on access.
    [[ ! -d $tree/sys/kernel/debug ]] || mount -t debugfs debugfs "$tree/sys/kernel/debug"
    [[ ! -d $tree/sys/kernel/tracing ]] || mount -t tracefs tracefs "$tree/sys/kernel/tracing"
    ls "$tree/sys/kernel/debug/tracing/" >/dev/null 2>&1 || :
}

make_system() { make_bare_system && connect && mount_kernel; }

# --- steps in the system

inside() { # COMMAND: run it in the system's shell
    local variables=()
    mapfile -t variables < <(passed_on)
    chroot "$tree" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${variables[@]}" /bin/sh -euc "$1" </dev/null
}

clone() {
    git -C "$checkout" bundle create --quiet "$tree/srv/drivelab.bundle" HEAD &&
        inside "cd /srv && git -c advice.detachedHead=false clone --quiet drivelab.bundle drivelab && cd drivelab && git rev-parse --short HEAD"
}

setup() { inside 'cd /srv/drivelab && ./drivelab setup'; }

small() {
    local size
    size=$(du -sm "$tree/srv/drivelab/.venv" | cut -f1)
    printf '.venv: %s MB\n' "$size"
    ((size < 500))
}

first_demo() { # beside other checks, so it would measure nearly everything again
    inside 'cd /srv/drivelab && DRIVELAB_REMEASURE=0 ./drivelab demo' && [[ -s $tree/srv/drivelab/results/report/index.html ]]
}

second_demo() { # does nothing
    local report=$tree/srv/drivelab/results/report/index.html before
    before=$(stat -c %y "$report")
    inside 'cd /srv/drivelab && ./drivelab demo' && [[ $(stat -c %y "$report") == "$before" ]]
}

copy() { cp -a "$tree/srv/drivelab" "$tree/srv/tested"; }

tests() { # beside the demo, in a copy at the same path: no test may use the demo's results
    local strict= status
    [[ -z ${DRIVELAB_TEST_STRICT-} ]] ||
        strict="export DRIVELAB_TEST_STRICT=folders DRIVELAB_TEST_LACKS='${DRIVELAB_TEST_LACKS-}';"
    inside "$strict unshare --mount /bin/sh -euc '
        mount --bind /srv/tested /srv/drivelab
        cd /srv/drivelab
        ./drivelab test'" && status=0 || status=$?
    mkdir -p "$checkout/.pytest_cache"
    cp "$tree"/srv/tested/.pytest_cache/*.xml "$checkout/.pytest_cache" # for the table of all tiers
    return "$status"
}

nothing_left() {
    local left
    left=$(printf '%s\n' "$(mounts | grep -vxF "$mounted")" "$(loop_devices)" "$(processes)" | grep .)
    [[ -z $left ]] || { printf 'left behind (mounts, loop devices, processes):\n%s\n' "$left" && return 1; }
}

step() { # TITLE COMMAND: output to the log, outcome to the terminal
    local began=$SECONDS
    printf '%-10s %-28s ' "$release" "$1"
    printf '\n== %s\n' "$1" >>"$log"
    "$2" >>"$log" 2>&1 9>&- & # in the background, so that signals are handled at once
    child=$!
    if wait "$child"; then
        printf 'ok  %4d s\n' $((SECONDS - began))
        [[ $2 != tests ]] || grep -E '^(NOT TESTED|=+ |[0-9]+ (passed|failed)).*' "$log" || :
    else
        printf 'FAILED after %d s; the end of %s:\n' $((SECONDS - began)) "$log"
        tail -n "$failed_lines" "$log"
        return 1
    fi
}

try() {
    remove_system
    : >"$log"
    step 'minimal system' make_system || return
    mounted=$(mounts)
    step 'git clone' clone &&
        step './drivelab setup' setup &&
        step '.venv below 500 MB' small &&
        step 'copy for the tests' copy || return
    (log=${log%.log}.tests.log && : >"$log" && step './drivelab test' tests) >"$cache/tests" &
    testing=$!
    step './drivelab demo' first_demo && step './drivelab demo, again' second_demo
    demo=$?
    wait "$testing" && ((demo == 0)) && tested=0 || tested=1
    cat "$cache/tests"
    step 'nothing left behind' nothing_left && return "$tested"
}
# ---

[[ $(id -u) -eq 0 ]] || fail "needs root, to make and enter minimal systems. Run it as root or with sudo."
mkdir -p "$cache"
exec 9>"$cache/lock"
flock -n 9 || fail "another run uses $cache. Wait for it to end."
if ! command -v debootstrap >/dev/null; then
    command -v apt-get >/dev/null || fail "debootstrap is missing. Install it, then run this again."
    echo "installing with apt-get: debootstrap debian-archive-keyring"
    { apt-get update && apt-get install -y --no-install-recommends debootstrap debian-archive-keyring; } \
        >"$cache/apt.log" 2>&1 || fail "apt-get could not install debootstrap, see $cache/apt.log."
fi
git -C "$checkout" diff --quiet HEAD || echo "note: this test ignores uncommitted changes"

set -m # each step is a process group, which can be ended as a whole
child=
trap 'exit 130' INT
trap 'exit 143' TERM HUP
trap '[[ -z $child ]] || kill -- "-$child" 2>/dev/null; remove_system' EXIT

[[ $# -gt 0 ]] || set -- bookworm trixie
failed=()
for release in "$@"; do
    log=$cache/$release.log
    try || failed+=("$release")
done
[[ ${#failed[@]} -eq 0 ]] || fail "failed: ${failed[*]}."
