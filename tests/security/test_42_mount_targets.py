# SPDX-License-Identifier: Apache-2.0
"""Folders are not mounted where they would become programs of a session that runs none of its
user's, or would keep who may log in to one session for later ones.
"""

import pytest

from client import ADMIN
from cluster import ENDED, wait_for, wait_status
from database import sql
from mounts import HOST
from storage import Stored

pytestmark = pytest.mark.gate


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Stored() as made:
        made.start_manager()
        made.start_storage()
        wait_for(lambda: made.client().get("/folders/_/hosts").json["allowed"],
                 what="the storage host to be known")
        assert create(made, "data").status == 201
        yield made
        made.stop()


def create(cluster, name):
    return cluster.client(ADMIN).post("/folders", {"name": name, "host": HOST})


def start(cluster, name, target=None, **more):
    config = {"mounts": ["data"], "mount_map": {"data": target}} if target else {}
    return cluster.client(ADMIN).post("/session", {"name": name, "enqueueOnly": True,
                                                   "config": config, **more})


def end(cluster, reply):
    assert reply.status == 201, reply
    id_ = reply.json["sessionId"]
    cluster.client().send("DELETE", f"/session/{id_}?forced=true")
    wait_status(cluster.client(), id_, *ENDED)


FILES = {"type": "system", "image": "aliquot/files"}


@pytest.mark.parametrize("target", ["/usr/lib/x86_64-linux-gnu/gconv", "/usr", "/lib64", "/bin", "/", "/data",
                                    "/home/workshop", "/home/other/data"])
def test_session_for_files_has_folders_at_home_only(cluster, target):
    """'rsync --server --iconv=NAME' loads what a folder has as a module of glibc's."""
    reply = start(cluster, "sftp", target, **FILES)
    assert reply.status == 400 and "mount" in str(reply.json), reply


@pytest.mark.parametrize("target", ["/home/work/data", "elsewhere", "/home/work/a/b"])
def test_session_for_files_has_folders_at_home(cluster, target):
    end(cluster, start(cluster, "sftp", target, **FILES))


def test_other_sessions_have_folders_elsewhere(cluster):
    end(cluster, start(cluster, "other", "/bin", image="host"))


@pytest.mark.parametrize("target", [".ssh", "/home/work/.ssh", "/home/work/.ssh/keys", ".ssh/."])
@pytest.mark.parametrize("more", [FILES, {"image": "host"}])
def test_no_folder_at_the_keys(cluster, target, more):
    """authorized_keys in it is written once, so that a first session's key opened later ones."""
    reply = start(cluster, "keys", target, **more)
    assert reply.status == 400 and ".ssh is the container's own" in str(reply.json), reply


def test_no_folder_has_the_name_of_the_keys(cluster):
    """Folders whose names begin with a dot are mounted without being asked for."""
    for reply in (create(cluster, ".ssh"),
                  cluster.client(ADMIN).post("/folders/data/rename", {"new_name": ".ssh"}),
                  cluster.client(ADMIN).post("/folders/data/clone",
                                             {"target_name": ".ssh", "target_host": HOST})):
        assert reply.status == 400, reply


def test_one_of_an_earlier_version_is_left_out(cluster):
    for name in (".cache1", ".vim"):
        assert create(cluster, name).status == 201
    cluster.programs["manager"].stop()
    sql(cluster, "UPDATE folders SET name = '.ssh' WHERE name = '.cache1'")
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 60, "the manager")
    reply = start(cluster, "automatic", image="host")
    assert reply.status == 201, reply
    shown = cluster.client().get(f"/aliquot/v1/sessions/{reply.json['sessionId']}").json
    assert [mount["name"] for mount in shown["mounts"]] == [".vim"], shown["mounts"]
    end(cluster, reply)
