# SPDX-License-Identifier: Apache-2.0
"""A small file system of its own, which a test fills up."""

import contextlib
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
