# SPDX-License-Identifier: Apache-2.0
"""'aliquot folder' and what it makes of folders on a storage host."""

import json
import os

import pytest

from client import ADMIN, USER
from cluster import wait_for
from storage import Stored


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Stored() as made:
        made.start_manager()
        made.start_storage()
        wait_for(lambda: made.client().get("/folders/_/hosts").json["allowed"],
                 what="the storage host to be known")
        yield made
        made.stop()


@pytest.fixture(name="do")
def do_fixture(cluster):
    """A command of the user's that succeeds: what it prints; 'by' another key."""
    def do(*words, by=USER, status=0):
        done = cluster.run("aliquot", "folder", *words, **cluster.cli_env(by))
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout + (done.stderr if status else "")
    yield do
    for key in (USER, ADMIN):
        for row in cluster.client(key).get("/aliquot/v1/folders").json["items"]:
            if row["is_owner"]:
                cluster.client(key).delete(f"/folders/{row['id']}/force")


def rows(text):
    return json.loads(text)


@pytest.mark.gate
def test_the_life_of_a_folder(do):
    assert "local:volume1" in do("hosts")
    do("create", "data", "--quota", "1g", "--cloneable")
    do("mkdir", "data", "runs/3", "--parents")
    assert [row["name"] for row in rows(do("files", "data", "-o", "json"))] == ["runs"]
    do("mv", "data", "runs/3", "last")
    assert "last" in do("files", "data")
    do("mv", "data", "last", "runs")
    do("mkdir", "data", "last")
    assert "'runs/last' exists" in do("mv", "data", "last", "runs", status=4)
    do("mv", "data", "runs/last", "last")
    assert "last" in do("files", "data", "last")
    do("rm-file", "data", "-r", "last", "runs")
    assert rows(do("files", "data", "-o", "json")) == []
    do("rename", "data", "corpus")
    do("set", "corpus", "--cloneable", "no", "-p", "ro")
    info = rows(do("info", "corpus", "-o", "json"))
    assert (info["name"], info["cloneable"], info["max_size"]) == ("corpus", False, 1024)
    do("rm", "corpus")
    assert rows(do("ls", "-o", "json"))[0]["status"] == "delete-pending"
    do("restore", "corpus")
    assert "--yes" in do("rm", "--purge", "corpus", status=2)
    do("rm", "--purge", "-y", "corpus")
    wait_for(lambda: rows(do("ls", "-o", "json")) == [], what="the folder to be removed")


def test_sharing(do):
    do("create", "data")
    do("share", "data", "admin@lablup.com", "-p", "ro")
    (offer,) = rows(do("invitations", "-o", "json", by=ADMIN))
    assert offer["vfolder_name"] == "data" and rows(do("invitations", "--sent", "-o", "json"))
    do("accept", offer["id"], by=ADMIN)
    assert "admin@lablup.com" in do("shares", "data")
    do("mkdir", "data", "x", by=ADMIN, status=6)
    do("unshare", "data", "admin@lablup.com")
    do("share", "data", "admin@lablup.com")
    do("reject", rows(do("invitations", "-o", "json", by=ADMIN))[0]["id"], by=ADMIN)
    assert "no@one" in do("unshare", "data", "no@one", status=5)


def test_files_lie_where_the_id_says(do, cluster):
    do("create", "data")
    id_ = rows(do("info", "data", "-o", "json"))["id"]
    place = cluster.volume / id_[:2] / id_[2:4] / id_[4:]
    (place / "made here").write_bytes(os.urandom(100))
    assert rows(do("files", "data", "-o", "json"))[0]["name"] == "made here"
    assert rows(do("info", "data", "-o", "json"))["used_bytes"] == 100


def test_a_clone_is_waited_for(do, cluster):
    do("create", "source", "--cloneable")
    id_ = rows(do("info", "source", "-o", "json"))["id"]
    place = cluster.volume / id_[:2] / id_[2:4] / id_[4:]
    for number in range(500):
        (place / str(number)).write_bytes(os.urandom(1000))
    done = rows(do("clone", "source", "target", "-o", "json"))
    assert (done["status"], done["num_files"], done["used_bytes"]) == ("ready", 500, 500_000)
    assert rows(do("clone", "source", "third", "--detach", "-o", "json"))["name"] == "third"
    do("clone", "target", "fourth", status=6)
