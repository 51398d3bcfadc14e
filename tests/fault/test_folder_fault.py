# SPDX-License-Identifier: Apache-2.0
"""A manager that is killed at each fault point of folders: what was acknowledged stays, what was
removed stays away, and nothing is left of what was cut short.
"""

import http.client
import subprocess

import pytest

from client import USER
from cluster import wait_for
from storage import Stored
from world import ROOT

POINTS = [point for point in subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True,
                                            text=True, check=True).stdout.split()
          if point.startswith("folder.")]


def asks(user, method, path, body=None):
    """The status; None if nobody answered."""
    try:
        return user.send(method, path, body).status
    except (OSError, http.client.HTTPException):
        return None


def states(user):
    """Name -> status; None if nobody answered."""
    try:
        return {row["name"]: row["status"] for row in user.get("/folders").json}
    except (OSError, http.client.HTTPException):
        return None


def make(user, name):
    """What was not acknowledged may be there, or go away and be made again."""
    wait_for(lambda: (states(user) or {}).get(name) == "ready"
             or asks(user, "POST", "/folders", {"name": name, "cloneable": True}) == 201, 60,
             f"'{name}' to be made")


@pytest.mark.parametrize("point", POINTS)
def test_folders_after_a_kill(point):
    with Stored() as cluster:
        cluster.start_manager(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(cluster.folder / "died"))
        cluster.start_storage()
        cluster.supervise()
        user = cluster.client(USER)

        def is_ready():
            return cluster.client().get("/folders/_/hosts").json["allowed"]
        wait_for(is_ready, what="the storage host to be known")
        for name in ("kept", "removed", "source"):
            make(user, name)
        asks(user, "POST", "/folders/source/clone", {"target_name": "clone"})
        wait_for(lambda: asks(user, "DELETE", "/folders/removed/force") in (204, 404), 60,
                 "'removed' to be removed")
        wait_for((cluster.folder / "died").exists, what="the fault point")

        wait_for(lambda: set((states(user) or {"": ""}).values()) == {"ready"}, 60,
                 lambda: f"all to be ready: {states(user)}")
        left = user.get("/folders").json
        assert {row["name"] for row in left} - {"clone"} == {"kept", "source"}
        ids = {row["id"] for row in left}
        wait_for(lambda: {"".join(path.parts[-3:]) for path in cluster.volume.glob("??/??/*")} == ids,
                 60, "files to lie where rows are, and nowhere else")
        cluster.stop()
