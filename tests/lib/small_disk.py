# SPDX-License-Identifier: Apache-2.0
"""A small file system of its own, which a test fills up."""

import contextlib
import pathlib
import shutil
import subprocess

import pytest


@contextlib.contextmanager
def small_disk(folder, size, *options):
    """Mounted at 'folder'; yields the file that fills it up."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "aliquot", folder],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip("a file system cannot be mounted here: " + done.stderr.strip())
    try:
        yield folder / "filler"
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def remount(folder, options):
    subprocess.run(["mount", "-o", "remount," + options, folder], check=True)


def fill(file):
    """Until not a byte more fits."""
    with contextlib.suppress(OSError), file.open("ab", buffering=0) as out:
        for size in (1 << 16, 1):
            with contextlib.suppress(OSError):
                while out.write(bytes(size)):
                    pass


def take_inodes(folder):
    """Make empty files until there is no inode for one more; returns the folder that has them."""
    kept = folder / "inodes"
    kept.mkdir()
    with contextlib.suppress(OSError):
        for number in range(1 << 20):
            (kept / str(number)).touch()
    return kept


class HiddenDisk:
    """Mounted at 'folder' in the mount namespace of 'space': those who run there see it, and we
    from outside. It goes with the space."""

    def __init__(self, space, folder, size, owner):
        folder.mkdir(exist_ok=True)
        shutil.chown(folder, owner)
        space.run("mount", "-t", "tmpfs", "-o", f"size={size},uid={owner},mode=700", "aliquot", folder)
        self.filler = pathlib.Path(f"/proc/{space.process.pid}/root{folder}/filler")

    def fill(self):
        fill(self.filler)

    def empty(self):
        self.filler.unlink()


# ---- file systems on a loop device, whose image is in memory ----

class LoopDisk:
    """A file system on a loop device, which the test's root mounts at 'folder'."""

    def __init__(self, folder, image, options):
        self.folder, self.image, self.options = folder, image, options

    def mount(self):
        done = subprocess.run(["mount", "-o", self.options, self.image, self.folder], capture_output=True,
                              text=True)
        if done.returncode:
            pytest.skip("a loop device cannot be mounted here: " + done.stderr.strip())

    def unmount(self):
        subprocess.run(["umount", "--lazy", self.folder], check=True)

    def fail(self):
        """The kernel's reaction to an I/O error: files that are open for writing stay open."""
        device = subprocess.run(["findmnt", "-no", "SOURCE", self.folder], check=True,
                                capture_output=True, text=True).stdout.strip()
        trigger = pathlib.Path("/sys/fs/ext4") / pathlib.Path(device).name / "trigger_fs_error"
        trigger.write_text("1")

    def repair(self):
        """Mount what is stored as after a reboot. It is a copy, because other mount namespaces of
        this machine may hold the file system that failed."""
        self.unmount()
        self.image = shutil.copy(self.image, self.image.with_name("repaired"))
        self.mount()


@contextlib.contextmanager
def loop_disk(folder, size, options, *make):
    if not shutil.which(make[0]):
        pytest.skip(f"no {make[0]}: install the packages e2fsprogs and btrfs-progs")
    with small_disk(folder.with_name(folder.name + "-image"), str(3 * size)) as image:
        with image.open("wb") as file:
            file.truncate(size)
        subprocess.run([*make, image], check=True, stdout=subprocess.DEVNULL)
        folder.mkdir()
        disk = LoopDisk(folder, image, options)
        disk.mount()
        folder.chmod(0o700)
        try:
            yield disk
        finally:
            disk.unmount()


def failing_disk(folder):
    """ext4, for LoopDisk.fail()."""
    return loop_disk(folder, 24 << 20, "loop,errors=remount-ro", "mkfs.ext4", "-q", "-F")


class Quota:
    def __init__(self, pool):
        self.pool = pool

    def limit(self, size):
        """In bytes, or "none". Stored data stays, and nothing can be added beyond the limit."""
        subprocess.run(["btrfs", "qgroup", "limit", size, "0/256", self.pool], check=True)


@contextlib.contextmanager
def quota_disk(folder):
    """Mounted at 'folder': btrfs, whose quotas each kernel with btrfs enforces."""
    pool = folder.with_name(folder.name + "-pool")
    with loop_disk(pool, 128 << 20, "loop", "mkfs.btrfs", "-q", "-M"):
        for words in (["quota", "enable", pool], ["subvolume", "create", pool / "first"]):
            subprocess.run(["btrfs", *words], check=True, stdout=subprocess.DEVNULL)
        folder.mkdir(mode=0o700)
        subprocess.run(["mount", "--bind", pool / "first", folder], check=True)
        folder.chmod(0o700)
        try:
            yield Quota(pool)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
