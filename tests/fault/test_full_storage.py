# SPDX-License-Identifier: Apache-2.0
"""Storage hosts whose volume, and storage hosts and web servers whose state folder, takes no data."""

import contextlib
import io
import os
import shutil
import tarfile
import uuid

import pytest

from client import USER
from cluster import Cluster, wait_for
from small_disk import failing_disk, fill, quota_disk, remount, small_disk, take_inodes
from storage import Stored
from web import Webbed

FREE, WRITABLE = "free space there", "remount it writable"
UPLOADS = ".aliquot-uploads"
DATA = os.urandom(4 << 20)


class Volume:
    """A disk below the volume; 'takes_names' if directories can still be made."""

    def __init__(self, cluster, stack, kind):
        self.cluster, self.kind, self.folder = cluster, kind, cluster.folder / "volume1"
        self.remedy = WRITABLE if kind == "fails" else FREE
        self.takes_names = kind == "full"
        if kind == "fails":
            self.disk = stack.enter_context(failing_disk(self.folder))
        elif kind == "quota":
            self.disk = stack.enter_context(quota_disk(self.folder))
        else:
            options = ["nr_inodes=100"] if kind == "inodes" else []
            self.filler = stack.enter_context(small_disk(self.folder, "16m", "mode=700", *options))

    def spoil(self):
        if self.kind == "fails":
            self.disk.fail()
        elif self.kind == "quota":
            self.disk.limit("1")
        elif self.kind == "inodes":
            self.filler = take_inodes(self.folder)
        else:
            fill(self.filler)

    def repair(self):
        if self.kind == "fails":
            self.cluster.programs["storage"].stop()
            self.disk.repair()
            self.cluster.start_storage()
        elif self.kind == "quota":
            self.disk.limit("none")
        elif self.kind == "inodes":
            shutil.rmtree(self.filler)
        else:
            self.filler.unlink()


def archive():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        info = tarfile.TarInfo("in/one")
        info.size = len(DATA)
        made.addfile(info, io.BytesIO(DATA))
    return out.getvalue()


def start(cluster):
    """A folder of a user with a file; a function that runs 'aliquot folder'."""
    cluster.start_manager()
    cluster.start_storage()
    wait_for(lambda: cluster.client().get("/folders/_/hosts").json["allowed"], what="the storage host")

    def do(*words, refused=None):
        done = cluster.run("aliquot", "folder", *words, **cluster.cli_env(USER))
        assert (done.returncode != 0) == bool(refused), (words, done.stdout, done.stderr)
        assert not refused or refused in done.stderr, (words, done.stderr)
        return done.stdout
    (cluster.folder / "small").write_bytes(b"stored")
    (cluster.folder / "big").write_bytes(DATA)
    do("create", "data", "--cloneable")
    do("cp", cluster.folder / "small", "data:")
    return do


def check_uploads_fail(cluster, volume, folder):
    """By the protocols: with the remedy, and no file is there under its name or a temporary one. The
    folder of uploads keeps what came, for the next try."""
    url = cluster.upload(folder, "half", len(DATA))
    for status, _, body in (cluster.patch(url, DATA, 0), cluster.ask(
            "PUT", "/archive?token=" + cluster.token("upload", folder, "", size=0, tree=True), archive())):
        assert status == 507 and volume.remedy in body.decode(), (status, body)
    assert cluster.ask("DELETE", url, Tus_Resumable="1.0.0")[0] == 204
    assert files(cluster, folder) == {"small"}


def files(cluster, folder):
    place = cluster.place(folder)
    return {str(path.relative_to(place)) for path in place.rglob("*")
            if path.is_file() and UPLOADS not in path.parts}


@pytest.mark.parametrize("kind", ["full", "inodes", "quota", "fails"])
def test_a_volume_that_takes_no_data(kind):
    with Stored() as cluster, contextlib.ExitStack() as stack:
        volume = Volume(cluster, stack, kind)
        do = start(cluster)
        [row] = cluster.client(USER).get("/aliquot/v1/folders").json["items"]
        folder = uuid.UUID(row["id"])
        volume.spoil()
        do("cp", cluster.folder / "big", "data:", refused=volume.remedy)
        check_uploads_fail(cluster, volume, folder)
        if not volume.takes_names:
            do("mkdir", "data", "new", refused=volume.remedy)
            do("create", "other", refused=volume.remedy)
            reply = cluster.client(USER).post("/folders/data/mkdir", {"path": "new"})
            assert reply.status in (503, 507) and volume.remedy in reply.body.decode(), reply
        assert "small" in do("files", "data")
        do("cp", "data:small", cluster.folder / "fetched")
        assert (cluster.folder / "fetched").read_bytes() == b"stored"
        volume.repair()
        do("cp", cluster.folder / "big", "data:")
        assert (cluster.place(folder) / "big").read_bytes() == DATA
        do("create", "other")
        assert files(cluster, folder) == {"small", "big"}
        cluster.stop()


# ---- state folders ----

@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_storage_host_starts_on_a_state_folder_that_takes_no_data(how):
    with Stored() as cluster, small_disk(cluster.folder / "storage", "2m", "mode=700") as filler:
        do = start(cluster)
        cluster.programs["storage"].stop()
        spoil(filler, how)
        cluster.start_storage()
        wait_for(lambda: cluster.client().get("/folders/_/hosts").json["allowed"], what="the storage host")
        do("cp", cluster.folder / "big", "data:")
        do("cp", "data:big", cluster.folder / "fetched")
        assert (cluster.folder / "fetched").read_bytes() == DATA
        cluster.stop()


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_web_server_starts_on_a_state_folder_that_takes_no_data(how):
    with Webbed() as cluster, small_disk(cluster.folder / "web", "2m", "mode=700") as filler:
        cluster.start_manager()
        cluster.start_web()
        cluster.programs["web"].stop()
        spoil(filler, how)
        cluster.start_web()
        browser = cluster.browser()
        assert browser.login().json["authenticated"] and browser.is_in()
        assert browser.get("/folders/_/hosts").status == 200
        cluster.stop()


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_joining_from_a_folder_that_takes_no_data_names_the_remedy(how):
    """Nothing is left there, and the same command works once there is room."""
    with Cluster() as cluster, small_disk(cluster.folder / "storage", "2m", "mode=700") as filler:
        state = cluster.folder / "storage"
        cluster.start_manager()
        spoil(filler, how)
        token = cluster.client().post("/aliquot/v1/join-tokens", {"storage": "local"}).json["token"]
        done = cluster.run("aliquot-storage", "--state", state, "join", cluster.link, token)
        assert done.returncode == 1 and (FREE if how == "full" else WRITABLE) in done.stderr, done
        assert not [path for path in state.iterdir() if path != filler]
        if how == "full":
            filler.unlink()
        else:
            remount(state, "rw")
        done = cluster.run("aliquot-storage", "--state", state, "join", cluster.link, token)
        assert done.returncode == 0, done
        cluster.stop()


def spoil(filler, how):
    if how == "full":
        fill(filler)
    else:
        remount(filler.parent, "ro")
