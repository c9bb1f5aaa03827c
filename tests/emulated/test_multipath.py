"""Native NVMe multipath, and several namespaces of one subsystem that share a serial number."""

from __future__ import annotations

import pytest
from emulation.machine import Machine

pytestmark = pytest.mark.emulated

BY_ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-SHARED"


def verdict(machine: Machine, path: str) -> str:
    return machine.run(f"python3 /guest/approve.py {path} EMU-SHARED").stdout.strip()


def test_kernel_hides_the_paths(bench: Machine) -> None:
    """The other tests need this: one visible device and two hidden paths for each namespace."""
    names = bench.run("cd /sys/class/block && grep -l 1 nvme*c*n*/hidden").stdout.split()
    assert len(names) == 4


@pytest.mark.parametrize("namespace", [1, 2])
def test_free_namespace_is_approved(bench: Machine, namespace: int) -> None:
    assert verdict(bench, f"{BY_ID}_{namespace}").endswith(f"n{namespace}")


def test_path_that_may_lead_to_either_namespace_is_refused(bench: Machine) -> None:
    sentence = verdict(bench, BY_ID)
    assert sentence.startswith("refused: ")
    assert "namespaces" in sentence


@pytest.mark.parametrize("kind", ["nvme", "ng"])
def test_namespace_written_by_a_process_is_refused(bench: Machine, kind: str) -> None:
    file = bench.run(f"readlink -f {BY_ID}_1").stdout.strip().replace("nvme", kind)
    bench.run(f"(exec sleep 9999 3<>{file}) >/dev/null 2>&1 & echo $! >/run/writer")
    bench.run("until [ $(cat /proc/$(cat /run/writer)/comm) = sleep ]; do sleep 0.1; done")
    sentence = verdict(bench, f"{BY_ID}_1")
    bench.run("kill $(cat /run/writer)")
    assert f"has {file} open for writing" in sentence


def test_other_namespace_may_be_formatted_and_the_mounted_one_is_untouched(bench: Machine) -> None:
    mounted = bench.run(f"readlink -f {BY_ID}_1").stdout.strip()
    bench.run(f"mke2fs -q -F -t ext4 -E lazy_itable_init=0 {mounted} && mount {mounted} /mnt")
    try:
        bench.run("dd if=/dev/urandom of=/mnt/file bs=1M count=4 2>/dev/null && mount -o remount,ro /mnt")
        content = f"dd if={mounted} bs=1M iflag=direct 2>/dev/null | md5sum"
        before = bench.run(content).stdout
        assert "is mounted on /mnt" in verdict(bench, f"{BY_ID}_1")
        assert (
            "error" not in bench.run(f"python3 /guest/purge.py {BY_ID}_2 EMU-SHARED nvme-format-user-data", 300).json()
        )
        assert bench.run(content).stdout == before
    finally:
        bench.run(f"umount /mnt && wipefs --all --quiet {mounted}")
    assert verdict(bench, f"{BY_ID}_1").startswith("nvme")
