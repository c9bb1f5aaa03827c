#!/bin/sh
# confined.sh container COMMAND...: run a command as root of an ordinary container: no FUSE, loop devices or tracefs,
#                                   8 MiB of lockable memory, and the capabilities that container engines grant.
# confined.sh user COMMAND...:      run a command as an ordinary user with a separate home.
# Needs root on the host; without it, exits with status 77 and prints the reason.
set -eu

capabilities='+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw'
capabilities=$capabilities,+sys_chroot,+mknod,+audit_write,+setfcap
devices='null zero full random urandom tty'
user=65534

cannot() {
    echo "cannot run this check here: $*" >&2
    exit 77
}

in_container() {
    export capabilities devices
    # shellcheck disable=SC2016 # expanded by the inner shell
    exec unshare --mount --propagation private sh -euc '
        tree=$(mktemp -d)
        mount -t tmpfs -o mode=755 tmpfs "$tree"
        for name in $devices; do cp -a "/dev/$name" "$tree"; done
        mkdir "$tree/shm" "$tree/pts"
        mount --bind /dev/pts "$tree/pts"
        mount -t tmpfs tmpfs "$tree/shm"
        ln -s /proc/self/fd "$tree/fd"
        for number in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${number%:*}" "$tree/${number#*:}"; done
        mount --move "$tree" /dev
        rmdir "$tree"
        mount --bind /sys /sys
        mount -o remount,bind,ro /sys
        exec prlimit --memlock=8388608:8388608 setpriv --bounding-set="-all,$capabilities" --inh-caps=-all "$@"
    ' sh "$@"
}

# Run in a mount namespace in which the user can read the interpreter and the project.
as_user() {
    python=$("$1" -c 'import sys; print(sys.base_prefix)') || cannot "$1 is not the project's Python"
    top=/$(printf '%s' "$python" | cut -d/ -f2)
    if [ "$top" != /usr ] && ! as_nobody test -x "$python"; then
        open_up "$top" "$python"
    fi
    as_nobody test -x "$PWD" || cannot "an ordinary user may not enter $PWD"
    home=$(mktemp -d)
    chown "$user" "$home"
    HOME=$home TMPDIR=$home as_nobody "$@" && status=0 || status=$?
    rm -rf "$home"
    exit "$status"
}

as_nobody() {
    setpriv --reuid="$user" --regid="$user" --clear-groups --bounding-set=-all --inh-caps=-all "$@"
}

# Show only $2 in the folder $1.
open_up() {
    kept=$(mktemp -d)
    mount --bind "$2" "$kept"
    mount -t tmpfs -o mode=755 tmpfs "$1"
    mkdir -p "$2"
    mount --move "$kept" "$2"
    rmdir "$kept"
}

[ "$(id -u)" -eq 0 ] || cannot "it needs root"
unshare --mount true 2>/dev/null || cannot "it needs the capability SYS_ADMIN"
unset DRIVELAB_TEST_STRICT DRIVELAB_RUN_DIR
kind=$1
shift
if [ "$kind" = user ] && [ -z "${CONFINED-}" ]; then
    CONFINED=yes exec unshare --mount --propagation private "$0" user "$@"
fi
case $kind in
container) in_container "$@" ;;
user) as_user "$@" ;;
*) cannot "unknown kind '$kind'" ;;
esac
