# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI, from 22.03 to 26.9: folders."""

import os

import pytest

import real_client
from client import ADMIN, USER
from cluster import wait_for
from storage import Stored

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")
NEWER = VERSIONS[1:]
NEWEST = VERSIONS[2:]
HOST = "local:volume1"


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    """A manager and a storage host."""
    with Stored() as made:
        made.start_manager()
        made.start_storage()
        wait_for(lambda: HOST in made.client().get("/folders/_/all_hosts").json["allowed"],
                 what="the storage host to be known")
        yield made
        made.stop()


@pytest.fixture(name="user")
def user_fixture(cluster, server):
    """Who is no administrator; without folders afterwards."""
    client = real_client.RealClient(server, cluster.address, USER)
    yield client
    for key in (USER, ADMIN):
        for folder in cluster.client(key).get("/folders").json:
            if folder["is_owner"] or key == ADMIN:
                assert cluster.client(key).delete(f"/folders/{folder['id']}/force").status == 204


@pytest.fixture(name="admin")
def admin_fixture(user, cluster, server):
    return real_client.RealClient(server, cluster.address, ADMIN)


def named(listed, name):
    return [line for line in listed.splitlines() if name in line.split()]


def lend(cluster, name):
    """The user's folder to the administrator; its id."""
    user, admin = cluster.client(USER), cluster.client(ADMIN)
    user.post(f"/folders/{name}/invite", {"perm": "rw", "user_ids": ["admin@lablup.com"]})
    invitation = admin.get("/folders/invitations/list").json["invitations"][0]
    assert admin.post("/folders/invitations/accept", {"inv_id": invitation["id"]}).status == 200
    return user.get(f"/folders/{name}").json["id"]


@pytest.mark.backendai("vfolder list-hosts", "vfolder list-allowed-types", "vfolder create",
                       "vfolder list", "vfolder info", "vfolder rename", "vfolder update-options",
                       "vfolder delete")
def test_the_life_of_a_folder(user, version):
    assert HOST in user.does("vfolder", "list-hosts")
    assert "group" in user.does("vfolder", "list-allowed-types")
    assert '"v1" is created' in user.does("vfolder", "create", "v1", HOST)
    assert "already exists" in user.fails("vfolder", "create", "v1", HOST)
    assert named(user.does("vfolder", "list"), "v1")
    info = user.does("vfolder", "info", "v1")
    assert "Owner: True" in info and "Number of files: 0" in info and "Clone Allowed: False" in info
    assert "Renamed" in user.says("vfolder", "rename", "v1", "v2")
    assert "No such virtual folder" in user.fails("vfolder", "info", "v1")
    user.says("vfolder", "update-options", "v2", "-p", "ro", "--set-cloneable", "true")
    info = user.does("vfolder", "info", "v2")
    assert "Permission: ro" in info and "Clone Allowed: True" in info
    user.does("vfolder", "create", "v3", HOST)
    assert "Deleted" in user.says("vfolder", "delete", "v2")
    listed = user.does("vfolder", "list")
    assert named(listed, "v2") == [] if version != NEWEST[0] else "delete-pending" in listed


@pytest.mark.backendai("vfolder list-own", "vfolder list-invited", "vfolder list-project",
                       versions=("23.9.10", "26.9.6"))
def test_lists_by_owner(cluster, user, admin, version):
    if version not in NEWER:
        return
    user.does("vfolder", "create", "mine", HOST)
    admin.does("vfolder", "create", "ours", HOST, "-g", "default")
    assert named(user.does("vfolder", "list-own"), "mine")
    assert named(user.does("vfolder", "list-project"), "ours")
    lend(cluster, "mine")
    assert named(admin.does("vfolder", "list-invited"), "mine")


@pytest.mark.backendai("vfolder restore", "vfolder recover", "vfolder delete-trash",
                       "vfolder purge", versions=("26.9.6",))
def test_the_trash(user, version):
    if version not in NEWEST:
        return
    for word in ("restore", "recover"):
        user.does("vfolder", "create", word, HOST)
        user.says("vfolder", "delete", word)
        assert "Restored" in user.says("vfolder", word, word)
        assert "ready" in user.does("vfolder", "info", word)
    for word in ("delete-trash", "purge"):
        user.does("vfolder", "create", word, HOST)
        assert "not in the trash" in user.fails("vfolder", word, word)
        user.says("vfolder", "delete", word)
        user.says("vfolder", word, word)
        assert "No such virtual folder" in user.fails("vfolder", "info", word)


@pytest.mark.backendai("vfolder mkdir", "vfolder ls", "vfolder mv", "vfolder rename-file",
                       "vfolder rm")
def test_files(user, version):
    user.does("vfolder", "create", "files", HOST)
    user.says("vfolder", "mkdir", "files", "d1")
    assert "d1" in user.does("vfolder", "ls", "files")
    if version == "26.9.6":
        made = user.says("vfolder", "mkdir", "files", "d1", "d2")
        assert "d2" in made and "'d1': File exists" in made
    else:
        assert "'d1': File exists" in user.fails("vfolder", "mkdir", "files", "d1")
    user.says("vfolder", "mv", "files", "d1", "d3")
    user.says("vfolder", "rename-file", "files", "d3", "d4")
    listed = user.does("vfolder", "ls", "files")
    assert "d4" in listed and "d1" not in listed and "drwxr-xr-x" in listed
    user.says("vfolder", "rm", "-r", "files", "d4", answer="y\n")
    assert "d4" not in user.does("vfolder", "ls", "files")
    assert "there is no 'd4'" in user.fails("vfolder", "rm", "files", "d4", answer="y\n")


@pytest.mark.backendai("vfolder upload", "vfolder download")
def test_up_and_down(user, version):
    """Each way as the client does it, by tus and with a token."""
    data = os.urandom(3 << 20)
    (user.home / "up.bin").write_bytes(data)
    user.does("vfolder", "create", "moved", HOST)
    assert "Done" in user.says("vfolder", "upload", "moved", "up.bin", "--chunk-size", "1m")
    assert "up.bin" in user.does("vfolder", "ls", "moved")
    (user.home / "up.bin").unlink()
    assert "Done" in user.says("vfolder", "download", "moved", "up.bin")
    assert (user.home / "up.bin").read_bytes() == data
    (user.home / "up.bin").unlink()
    info = user.does("vfolder", "info", "moved")
    assert "Number of files: 0" not in info


@pytest.mark.backendai("vfolder invite", "vfolder invitations", "vfolder leave")
def test_invitations(user, admin):
    user.does("vfolder", "create", "offered", HOST)
    assert "No users found" in user.does("vfolder", "invite", "offered", "nobody@lablup.com")
    assert "admin@lablup.com" in user.does("vfolder", "invite", "offered", "admin@lablup.com",
                                           "-p", "ro")
    assert "read-only" in admin.does("vfolder", "invitations", answer="1\nr\n")
    assert "No invitations" in admin.does("vfolder", "invitations")
    user.does("vfolder", "invite", "offered", "admin@lablup.com", "-p", "rw")
    assert "You can now access" in admin.does("vfolder", "invitations", answer="1\na\n")
    info = admin.does("vfolder", "info", "offered")
    assert "Owner: False" in info and "Permission: rw" in info
    assert "Left the shared" in admin.does("vfolder", "leave", "offered")


@pytest.mark.backendai("vfolder share", "vfolder unshare")
def test_shares_of_a_project(user, admin):
    admin.does("vfolder", "create", "common", HOST, "-g", "default", "-p", "ro")
    assert "Permission: ro" in user.does("vfolder", "info", "common")
    assert "user@lablup.com" in admin.does("vfolder", "share", "common", "user@lablup.com")
    assert "Permission: rw" in user.does("vfolder", "info", "common")
    assert "user@lablup.com" in admin.does("vfolder", "unshare", "common", "user@lablup.com")
    assert "Permission: ro" in user.does("vfolder", "info", "common")
    assert "cannot be shared by you" in user.fails("vfolder", "share", "common", "user@lablup.com")


@pytest.mark.backendai("vfolder clone")
def test_a_clone(user):
    user.does("vfolder", "create", "source", HOST, "--cloneable")
    user.says("vfolder", "mkdir", "source", "inside")
    assert "complete" in user.says("vfolder", "clone", "source", "target", HOST)
    assert "inside" in user.does("vfolder", "ls", "target")
    assert "not allowed" in user.does("vfolder", "clone", "target", "third", HOST)


@pytest.mark.backendai("admin vfolder list", "admin vfolder list-hosts", "admin vfolder list-mounts",
                       "admin vfolder perf-metric", "admin storage list", "admin storage info")
def test_administrators(user, admin):
    user.does("vfolder", "create", "seen", HOST)
    assert named(admin.does("admin", "vfolder", "list"), "seen")
    assert HOST in admin.does("admin", "vfolder", "list-hosts")
    assert HOST in admin.does("admin", "vfolder", "list-mounts")
    assert "folders" in admin.does("admin", "vfolder", "perf-metric", HOST)
    assert HOST in admin.does("admin", "storage", "list")
    assert "vfs" in admin.does("admin", "storage", "info", HOST)
    assert "storage.toml" in admin.fails("admin", "vfolder", "get-fstab-contents")
    assert "storage.toml" in admin.fails("admin", "vfolder", "mount-host", "/dev/sdb", "data")
    assert "storage.toml" in admin.fails("admin", "vfolder", "umount-host", "data")


@pytest.mark.backendai("admin vfolder change-vfolder-ownership",
                       "admin vfolder list-shared-vfolders", "admin vfolder shared-vfolder-info",
                       "admin vfolder update-shared-vf-permission",
                       "admin vfolder remove-shared-vf-permission", versions=("23.9.10", "26.9.6"))
def test_shares_and_owners_by_administrators(cluster, user, admin, version):
    if version not in NEWER:
        return
    user.does("vfolder", "create", "lent", HOST)
    folder = lend(cluster, "lent")
    shared = admin.does("admin", "vfolder", "list-shared-vfolders")
    assert '"lent"' in shared and "admin@lablup.com" in shared
    assert "user@lablup.com" in admin.does("admin", "vfolder", "shared-vfolder-info", folder)
    me = cluster.client(ADMIN).get("/folders/_/shared").json["shared"][0]["shared_to"]["uuid"]
    admin.does("admin", "vfolder", "update-shared-vf-permission", folder, me, "-p", "ro")
    assert "Permission: ro" in admin.does("admin", "vfolder", "shared-vfolder-info", folder)
    admin.does("admin", "vfolder", "remove-shared-vf-permission", folder, me)
    assert '"lent"' not in admin.does("admin", "vfolder", "list-shared-vfolders")
    admin.does("admin", "vfolder", "change-vfolder-ownership", folder, "admin@lablup.com")
    assert "Owner: True" in admin.does("vfolder", "info", "lent")


@pytest.mark.backendai("admin permission list", versions=("23.9.10", "26.9.6"))
def test_permissions_of_hosts(admin, version):
    if version in NEWER:
        assert "mount-in-session" in admin.does("admin", "permission", "list")


def mounted(cluster, name):
    """What the session mounts, which is ended: it waits, as there is no agent."""
    client = cluster.client(USER)
    shown = client.get(f"/aliquot/v1/sessions/{name}").json
    assert client.delete(f"/session/{name}").status in (200, 204)
    return {(row["name"], row.get("path"), row["target"], row["mode"]) for row in shown["mounts"]}


@pytest.mark.backendai("session create")
def test_folders_in_sessions(cluster, user, version):
    create = ("session", "create", "--enqueue-only", "-r", "cpu=1", "-r", "mem=64m")
    name = f"mounts-{version[:2]}"
    for folder in ("in", "out", ".conf"):
        user.does("vfolder", "create", folder, HOST)
    user.does(*create, "-t", name, "-v", "in", "-m", "out=results", "host")
    assert mounted(cluster, name) == {("in", None, "/home/work/in", "rw"),
                                      ("out", None, "/home/work/results", "rw"),
                                      (".conf", None, "/home/work/.conf", "rw")}
    user.does(*create, "-t", name, "-v", "in:/srv/in", "--mount", "out/a/b", "host")
    assert mounted(cluster, name) == {("in", None, "/srv/in", "rw"),
                                      ("out", "a/b", "/home/work/out", "rw"),
                                      (".conf", None, "/home/work/.conf", "rw")}
    assert "there is no folder 'none'" in user.fails(*create, "-t", name, "-v", "none", "host")
    assert "container's own" in user.fails(*create, "-t", name, "-v", "in:/etc", "host")
    if version in NEWEST:
        user.does(*create, "-t", name, "--mount",
                  "type=bind,source=in,target=/srv/in,permission=ro", "host")
        assert ("in", None, "/srv/in", "ro") in mounted(cluster, name)


def test_what_the_client_cannot(user):
    user.does("vfolder", "create", "whole", HOST)
    assert "NotImplementedError" in user.fails("vfolder", "cp", "a", "whole:a")
    assert "request_download" in user.fails("vfolder", "request-download", "whole", "a")
