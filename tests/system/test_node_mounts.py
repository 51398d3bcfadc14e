# SPDX-License-Identifier: Apache-2.0
"""What an administrator unmounts on a node is not busy: no container keeps mounts of the node."""

import contextlib
import os
import pathlib

import pytest

from cluster import Cluster, wait_for
from runtimes import Session, settings_of
from world import Space


class Node(Cluster):
    """Its agent is in a mount namespace of its own, whose root is private or shared."""

    def __init__(self, propagation, **settings):
        super().__init__(**settings)
        self.space = Space(mounts=True, network=False)
        self.space.run("mount", f"--make-r{propagation}", "/")

    def start_program(self, name, *command, **settings):
        if name == "agent":
            command = self.space.words(*command)
        return super().start_program(name, *command, **settings)

    def end(self):
        super().end()
        self.space.close()

    def mount(self, *path):
        place = self.folder.joinpath(*path)
        self.space.run("mkdir", "-p", place)
        self.space.run("mount", "-t", "tmpfs", "disk", place)
        return place


def namespace(pid):
    return os.readlink(f"/proc/{pid}/ns/mnt")


def holders(node, disk):
    """Command lines of processes that have the disk mounted, other than those on the node itself."""
    found = []
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (proc / "mountinfo").read_text()
            if str(disk).replace(" ", r"\040") in text \
                    and namespace(proc.name) != namespace(node.space.process.pid):
                found.append((proc / "cmdline").read_text().replace("\0", " "))
    return found


@pytest.fixture(params=[("crun", "private"), ("runc", "private"), ("crun", "shared")],
                ids="-".join, name="node")
def node_fixture(request):
    runtime, propagation = request.param
    with Node(propagation, **settings_of(runtime)) as node:
        node.start_manager()
        disks = [node.mount("a disk"), node.mount("a disk", "inner"), node.mount("over")]
        node.mount("over")  # a second one over the first
        node.start_agent()
        yield node, disks
        node.check_nothing_left()
        node.stop()


@pytest.mark.gate
def test_an_unmounted_disk_is_not_busy(node):
    node, disks = node
    sessions = [Session(node, "echo ready; sleep 1000") for _ in range(2)]
    for session in sessions:
        session.wait_log("ready")
    node.space.run("umount", "--recursive", disks[0])
    node.space.run("umount", disks[2])
    node.space.run("umount", disks[2])
    for disk in disks:
        wait_for(lambda place=disk: not holders(node, place), 60,
                 lambda place=disk: f"nobody to have {place}: {holders(node, place)}")
    for session in sessions:  # it does without them
        assert session.kernel["status"] == "RUNNING"
        done = node.cli("exec", session.id, "--", "cat", "/proc/self/mountinfo")
        assert done.returncode == 0 and str(node.folder / "over") not in done.stdout, done
        session.end()
        assert session.wait()["reason"] == "user-requested"
