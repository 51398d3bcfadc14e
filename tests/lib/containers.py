# SPDX-License-Identifier: Apache-2.0
"""Containers in tests: which runtimes there are, and what containers leave behind.

Every cluster has cgroups below a parent of its own name, so that they can be
found, and ended also when the test was killed.
"""

import contextlib
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")


def parent_of(folder):
    """The cgroup below which a test cluster's containers have theirs."""
    return "/" + pathlib.Path(folder).name


def hierarchies():
    """The mount points of cgroups."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [pathlib.Path(line.split()[4]) for line in lines
            if line.split(" - ")[1].split()[0] in ("cgroup", "cgroup2")]


def tops_of(folder):
    """Its parent in each hierarchy."""
    return [mount / parent_of(folder)[1:] for mount in hierarchies()]


def folders_below(top):
    """All of them, the deepest first; they may go while they are looked at, unlike with glob()."""
    return [pathlib.Path(path) for path, _, _ in os.walk(top, topdown=False)][:-1]


def cgroups_of(folder):
    """All cgroups below the parent, deepest first, the parent and the agents' own left out."""
    return [path for top in tops_of(folder) for path in folders_below(top)
            if len(path.relative_to(top).parts) > 1]


def pids_of(folder):
    pids = set()
    for path in cgroups_of(folder):
        with contextlib.suppress(OSError):
            pids.update(map(int, (path / "cgroup.procs").read_text().split()))
    return pids


def loops_of(folder):
    """Loop devices with a file of the folder behind them."""
    found = []
    for file in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if str(folder) in file.read_text():
                found.append(str(file.parent.parent.name))
    return found


def mounts_of(folder):
    """Mounts of the folder that any process sees, but for those of test programs."""
    text = pathlib.Path("/proc/self/mountinfo").read_text()
    return [line for line in text.splitlines() if str(folder) in line]


def leftovers_of(folder):
    return [*map(str, cgroups_of(folder)), *loops_of(folder)]


def remove_cgroups(folder):
    """Kill what is in them and remove them, parents included."""
    deadline = time.monotonic() + 20
    while pids := pids_of(folder):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.02)
    for top in tops_of(folder):
        for path in [*folders_below(top), top]:
            with contextlib.suppress(OSError):
                path.rmdir()


@functools.cache
def why_not(runtime):
    """Why containers cannot be tested here, or ""."""
    if os.geteuid() != 0:
        return "containers need root"
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return "" if shutil.which(runtime, path=path) else f"{runtime} is not installed"


def can_limit_scratch():
    """By file systems on loop devices."""
    return os.access("/dev/loop-control", os.R_OK | os.W_OK)


def can_mount_cgroup2():
    return any(subprocess.run(["stat", "-fc", "%T", mount], capture_output=True, text=True)
               .stdout.strip() == "cgroup2fs" for mount in hierarchies())
