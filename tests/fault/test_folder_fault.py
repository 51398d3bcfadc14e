# SPDX-License-Identifier: Apache-2.0
"""A manager, or a storage host, that is killed at each fault point of folders: what was acknowledged
stays, what was removed stays away, and nothing is left of what was cut short.
"""

import http.client
import subprocess
import uuid

import pytest

from client import USER
from cluster import wait_for
from storage import Stored
from world import ROOT

UPLOADS = ("storage.upload.", "storage.unpack.")  # of test_storage_fault.py
POINTS = [point for point in subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True,
                                            text=True, check=True).stdout.split()
          if point.startswith(("folder.", "storage.")) and not point.startswith(UPLOADS)]
FILES = [f"file{number}" for number in range(5)]


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


def folder_path(cluster, user, name):
    return cluster.place(uuid.UUID(user.get(f"/folders/{name}").json["id"]))


def files_in(place):
    return {path.name for path in place.iterdir()} - {".aliquot-uploads"}


@pytest.mark.parametrize("point", POINTS)
def test_folders_after_a_kill(point):
    with Stored() as cluster:
        fault = {"ALIQUOT_FAULT": point, "ALIQUOT_FAULT_ONCE": str(cluster.folder / "died")}
        cluster.start_manager(**(fault if point.startswith("folder.") else {}))
        cluster.start_storage(**(fault if point.startswith("storage.") else {}))
        cluster.supervise()
        user = cluster.client(USER)

        def is_ready():
            return cluster.client().get("/folders/_/hosts").json["allowed"]
        wait_for(is_ready, what="the storage host to be known")
        for name in ("kept", "removed", "source"):
            make(user, name)
        for name in FILES:
            (folder_path(cluster, user, "source") / name).write_text(name)
            (folder_path(cluster, user, "kept") / name).write_text(name)
        wait_for(lambda: asks(user, "DELETE", "/folders/kept/delete-files", {"files": FILES[:1]})
                 in (200, 204, 404), 60, "a file to be removed")
        asks(user, "POST", "/folders/source/clone", {"target_name": "clone"})
        wait_for(lambda: asks(user, "DELETE", "/folders/removed/force") in (204, 404), 60,
                 "'removed' to be removed")
        wait_for((cluster.folder / "died").exists, what="the fault point")

        wait_for(lambda: set((states(user) or {"": ""}).values()) == {"ready"}, 60,
                 lambda: f"all to be ready: {states(user)}")
        left = user.get("/folders").json
        assert {row["name"] for row in left} - {"clone"} == {"kept", "source"}
        assert files_in(folder_path(cluster, user, "kept")) == set(FILES[1:])
        for name in {row["name"] for row in left} - {"kept"}:
            assert files_in(folder_path(cluster, user, name)) == set(FILES), name
        ids = {row["id"] for row in left}
        wait_for(lambda: {"".join(path.parts[-3:]) for path in cluster.volume.glob("??/??/*")} == ids,
                 60, "files to lie where rows are, and nowhere else")
        wait_for(lambda: {path.name for path in cluster.volume.glob(".*")} == {".aliquot-volume"}, 60,
                 lambda: f"nothing of what was cut short: {list(cluster.volume.iterdir())}")
        cluster.stop()
