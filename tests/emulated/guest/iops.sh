#!/bin/sh
# Measure random write 4 KiB with fio; print fio's JSON. Arguments: device, MiB to write, further options of fio.
device=$1 size_mib=$2
shift 2
exec fio --name=writes --filename="$device" --rw=randwrite --bs=4k --direct=1 --ioengine=libaio --iodepth=8 \
    --io_size="${size_mib}M" --norandommap --randrepeat=0 --thread --output-format=json "$@"
