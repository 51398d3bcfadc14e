# SPDX-License-Identifier: Apache-2.0
"""A cluster with a storage host, agents that mount its volume, and sessions with folders."""

import contextlib
import ctypes
import os
import uuid

import pytest

from runtimes import Session
from storage import Stored

HOST = "local:volume1"
WORK = "/home/work"


class Mounted(Stored):
    def start(self, *agents):
        """Folders of root are mounted only where nobody else can enter the volume."""
        self.volume = self.folder / "volume1"
        self.volume.mkdir(mode=0o700)
        self.start_manager()
        self.start_storage()
        for name in agents or ("agent",):
            self.start_mounting(name)

    def start_mounting(self, name="agent", **settings):
        self.start_agent(name, **{"ALIQUOT_FOLDERS_VOLUMES": f"{HOST}={self.volume}", **settings})

    def folder_of(self, name, **more):
        """Make a folder: its id."""
        reply = self.client().post("/folders", {"name": name, "host": HOST, **more})
        assert reply.status == 201, reply
        return uuid.UUID(hex=reply.json["id"])


def mounting(cluster, command, *mounts, size=1, **more):
    """A batch session that has folders: each (NAME, TARGET, and options: permission, subpath)."""
    config = {"resources": {"cpu": "1", "mem": "64m"}, "mounts": [mount[0] for mount in mounts],
              "mount_map": {mount[0]: mount[1] for mount in mounts},
              "mount_options": {mount[0]: mount[2] for mount in mounts if len(mount) > 2}}
    return Session(cluster, command, config={**config, **more}, cluster_size=size,
                   cluster_mode="multi-node" if size > 1 else "single-node")


def text_of(cluster, session):
    """Why it has failed, or waits."""
    return cluster.client().get(f"/aliquot/v1/sessions/{session.id}/why").body.decode()


@contextlib.contextmanager
def hanging(path):
    """A file system that answers nobody: FUSE without a program behind it."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("there is no FUSE")
    libc = ctypes.CDLL(None, use_errno=True)
    fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    assert libc.mount(b"hangs", str(path).encode(), b"fuse", 0, options) == 0, ctypes.get_errno()
    try:
        yield
    finally:
        os.close(fuse)  # whoever waits is told that it is gone
        libc.umount2(str(path).encode(), 2)  # MNT_DETACH


def volumes_of(cluster, agent="agent"):
    """What the agent has logged of its volumes last."""
    lines = [line for line in cluster.log_of(agent).splitlines() if "volume '" in line]
    return lines[-1].partition(": ")[2] if lines else ""
