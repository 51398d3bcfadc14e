# SPDX-License-Identifier: Apache-2.0
"""'aliquot-manager join' dies at each of its fault points, or the leader does while it asks: the
state folder has nothing or, after the next start, all; a token joins once."""

import subprocess

import pytest

from cluster import Cluster, wait_for
from managers import FILES, join, make_token, managers, modes
from postgres import Server
from test_fault import POINTS as OTHERS
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith(("manager.join.", "core.manager."))]
JOINER = [point for point in POINTS if point.startswith("manager.join.")]
COMPLETE = ("manager.join.ready", "manager.join.moved")  # the folder is renamed, and on disk


@pytest.fixture(scope="module")
def leader():
    with Server() as server:
        server.run("CREATE DATABASE cluster")
        with Cluster(ALIQUOT_MANAGER_DATABASE=server.uri("cluster")) as cluster:
            cluster.start_manager(ALIQUOT_MANAGER_NAME="first")
            yield cluster
            cluster.stop()


def test_all_points_are_tried_somewhere():
    assert len(JOINER) >= 4 and "core.manager.removed" in POINTS and not {*POINTS} & {*OTHERS}


@pytest.mark.parametrize("point,passage", [*((point, 1) for point in JOINER),
                                           *(("manager.join.moved", n) for n in (2, 3, 4))])
def test_joiner_is_killed(leader, point, passage):
    name = f"{point}-{passage}".replace("manager.join.", "")
    killed = join(leader, name, make_token(leader, name), "--name", name,
                  ALIQUOT_FAULT=f"{point}:{passage}")
    assert killed.returncode == -9, killed
    # Any command finishes what was complete.
    leader.run("aliquot-manager", "--state", leader.folder / name, "db", "info",
               ALIQUOT_MANAGER_DATABASE="")
    found = modes(leader.folder / name)
    if point in COMPLETE:
        assert found == {file: 0o600 for file in FILES}
    else:
        assert not any(file in found for file in FILES)
        # The token is used; another one joins with the same folder.
        again = join(leader, name, make_token(leader, name), "--name", name)
        assert again.returncode == 0, again
        assert modes(leader.folder / name) == {file: 0o600 for file in FILES}


@pytest.mark.parametrize("point", ["core.join.asked", "core.join.stored", "link.join.accepted",
                                   "core.manager.removed"])
def test_leader_is_killed(leader, point):
    """It has the manager's row or not; the token was good for one join at most."""
    name = point.replace(".", "-")
    leader.programs["manager"].may_end = True
    leader.stop()
    leader.start_manager(ALIQUOT_MANAGER_NAME="first", ALIQUOT_FAULT=point)
    token = make_token(leader, name)
    if point == "core.manager.removed":
        assert join(leader, name, token, "--name", name).returncode == 0
        leader.cli("manager", "rm", "--yes", name)
    else:
        assert join(leader, name, token, "--name", name).returncode == 1
        assert modes(leader.folder / name) == {}
    wait_for(lambda: leader.programs["manager"].process.poll() is not None, 60, "it to be killed")
    leader.start_manager(ALIQUOT_MANAGER_NAME="first")
    assert (name in managers(leader)) == (point in ("core.join.stored", "link.join.accepted"))
    again = join(leader, name + "-2", token, "--name", name)
    assert again.returncode == (0 if point == "core.join.asked" else 1), again
