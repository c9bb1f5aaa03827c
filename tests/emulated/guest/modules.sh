#!/bin/sh
# Load the kernel modules of a folder. Argument: the folder.
for module in "$1"/*.ko; do
    name=${module##*/??-} name=${name%.ko}
    # Like modprobe, use MODULE.PARAMETER=VALUE from the kernel's command line (modprobe(8)).
    # shellcheck disable=SC2046 # parameters are words
    insmod "$module" $(tr ' ' '\n' </proc/cmdline | sed -n "s/^$name\.//p") || exit
done
