# SPDX-License-Identifier: Apache-2.0
"""Rights to folders that end: tokens end with them, and invitations give no more than their inviter
may. Manager and storage host are the real ones.
"""

import http.client
import socket
import tarfile
import threading
import time
import uuid

import pytest

from cluster import wait_for
from shared_folders import LARGE, Folders, invitation, numbers
from storage import Stored


class Running:
    """A transfer in a thread. 'ended' is when it was cut, None of one that came to its end."""

    def __init__(self, cluster, function, *args):
        self.cluster, self.ended, self.moved = cluster, None, 0
        self.may_stop = threading.Event()
        self.thread = threading.Thread(target=function, args=(self, *args), daemon=True)
        self.thread.start()

    def connect(self):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        sock.settimeout(30)
        sock.connect(("127.0.0.1", self.cluster.port))
        return sock

    def stop(self):
        self.may_stop.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


def download(running, url):
    with running.connect() as sock:
        sock.sendall(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        try:
            while running.moved < LARGE and not running.may_stop.is_set():
                got = len(sock.recv(1 << 16))
                if not got:
                    break
                running.moved += got
                time.sleep(0.005)
        except OSError:
            pass
        running.ended = None if running.may_stop.is_set() else time.monotonic()


def upload(running, url):
    with running.connect() as sock:
        sock.sendall(f"PATCH {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {LARGE}\r\n"
                     "Tus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
                     "Content-Type: application/offset+octet-stream\r\n\r\n".encode())
        try:
            while not running.may_stop.is_set():
                sock.sendall(b"x" * 4096)
                running.moved += 4096
                time.sleep(0.01)
        except OSError:
            running.ended = time.monotonic()


def pack(running, url):
    head = tarfile.TarInfo("packed")
    head.size = LARGE
    with running.connect() as sock:
        sock.sendall(f"PUT {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {LARGE + 2048}\r\n\r\n"
                     .encode() + head.tobuf())
        try:
            while not running.may_stop.is_set():
                sock.sendall(b"x" * 4096)
                running.moved += 4096
                time.sleep(0.01)
        except OSError:
            running.ended = time.monotonic()


class Holder:
    """Tokens of a user for all that can be done with them, and transfers that run."""

    def __init__(self, cluster, client, folder):
        self.cluster, self.folder = cluster, folder
        url = cluster.url
        self.reads = {
            "tree read": ("GET", url(client, folder, "download", path="/", tree=True)
                          + "&path=a.txt"),
            "file read": ("GET", url(client, folder, "download", path="a.txt")),
            "archive": ("GET", url(client, folder, "download", path="small", archive=True)),
        }
        tree = url(client, folder, "upload", path="/", tree=True, size=1)
        self.tree = tree
        self.begun = url(client, folder, "upload", path="begun", size=10)
        assert cluster.patch(self.begun, b"12345", 0)[0] == 204
        assert cluster.offset(self.begun) == 5
        self.running_read = Running(cluster, download, url(client, folder, "download", path="large"))
        self.running_write = Running(cluster, upload, url(client, folder, "upload", path="u",
                                                          size=LARGE))
        self.running_pack = Running(cluster, pack, tree.replace("/upload?", "/archive?"))
        for transfer in (self.running_read, self.running_write, self.running_pack):
            wait_for(lambda t=transfer: t.moved > 1 << 15, what="a transfer to run")
        assert self.statuses() == dict.fromkeys(self.names(), True)

    def names(self):
        return [*self.reads, "tree write", "begun upload"]

    def write(self):
        url = (self.tree + f"&path=w{next(numbers)}&size=1&mode=420&modified=0&upload="
               + str(uuid.uuid4()))
        return self.cluster.patch(url, b"x", 0)[0]

    def status(self, name):
        """One that is cut counts as refused."""
        try:
            return self.send(name)
        except (http.client.HTTPException, ConnectionError):
            return 403

    def send(self, name):
        if name == "tree write":
            return self.write()
        if name == "begun upload":
            return self.cluster.ask("HEAD", self.begun, Tus_Resumable="1.0.0")[0]
        method, url = self.reads[name]
        return self.cluster.ask(method, url)[0]

    def statuses(self):
        """Name -> is it allowed?"""
        found = {name: self.status(name) for name in self.names()}
        assert set(found.values()) <= {200, 204, 403, 404}, found
        return {name: status < 400 for name, status in found.items()}

    def check_ended(self, since, keeps_reading=False):
        """All is refused and cut; how long the transfers took to be."""
        wanted = {name: keeps_reading and name in self.reads for name in self.names()}
        wait_for(lambda: self.statuses() == wanted, 10, lambda: f"{self.statuses()} -> {wanted}")
        cut = [self.running_write, self.running_pack] + ([] if keeps_reading else [self.running_read])
        wait_for(lambda: all(t.ended for t in cut), 20, "transfers to be cut")
        assert self.running_read.moved < LARGE
        print("cut after %s s" % ", ".join(f"{t.ended - since:.2f}" for t in cut))
        if keeps_reading:
            assert not self.running_read.ended
        assert self.statuses() == wanted
        self.stop()

    def check_kept(self):
        assert all(self.statuses().values())
        for transfer in (self.running_read, self.running_write, self.running_pack):
            assert not transfer.ended

    def stop(self):
        for transfer in (self.running_read, self.running_write, self.running_pack):
            transfer.stop()


@pytest.fixture(scope="module", name="there")
def there_fixture():
    with Folders() as cluster:
        yield cluster.begin()
        cluster.stop()


# ---- what ends a right ----

def leave(there, guest, folder):
    return guest.post(f"/folders/{folder}/leave", {})


def unshare(there, guest, folder):
    return there.owner.post("/folders/_/shared", {"vfolder": folder, "user": guest.id,
                                                  "perm": None})


def lower(there, guest, folder):
    return there.owner.post("/folders/_/shared", {"vfolder": folder, "user": guest.id,
                                                  "perm": "ro"})


def deactivate(there, guest, _):
    return there.admin.send("PATCH", f"/aliquot/v1/users/{guest.email}", {"status": "inactive"})


def delete_user(there, guest, _):
    return there.admin.send("PATCH", f"/aliquot/v1/users/{guest.email}", {"status": "deleted"})


def deactivate_key(there, guest, _):
    return there.admin.send("PATCH", f"/aliquot/v1/keypairs/{guest.key}", {"is_active": False})


def delete_key(there, guest, _):
    return there.admin.delete(f"/aliquot/v1/keypairs/{guest.key}")


def trash(there, _, folder):
    return there.owner.delete(f"/folders/{folder}")


def purge(there, _, folder):
    return there.owner.delete(f"/folders/{folder}/force")


@pytest.mark.parametrize("end", [leave, unshare, lower, deactivate, delete_user, deactivate_key,
                                 delete_key, trash, purge])
def test_tokens_of_a_guest_end(there, end):
    guest, folder = there.make_person(), there.make_files(there.owner)
    there.lend(guest, folder)
    theirs, own = Holder(there, guest, folder), None
    if end not in (trash, purge):
        own = Holder(there, there.owner, folder)
    since = time.monotonic()
    reply = end(there, guest, folder)
    assert reply.status in (200, 204), reply
    theirs.check_ended(since, keeps_reading=end is lower)
    if own:
        own.check_kept()
        own.stop()


def test_tokens_of_a_former_owner_end(there):
    former, heir = there.make_person(), there.make_person()
    folder = there.make_files(former)
    holder, since = Holder(there, former, folder), time.monotonic()
    assert there.admin.post("/folders/_/change-ownership",
                            {"vfolder": folder, "user_email": heir.email}).status == 200
    holder.check_ended(since)


def test_tokens_of_a_former_member_end(there):
    member = there.make_person(groups=["shelf"])
    folder = there.make_files(there.admin, group="shelf", permission="rw")
    holder, since = Holder(there, member, folder), time.monotonic()
    project = next(row for row in there.admin.get("/aliquot/v1/groups").json["items"]
                   if row["name"] == "shelf")
    reply = there.admin.post(f"/aliquot/v1/groups/{project['id']}/remove-users",
                             {"users": [member.email]})
    assert reply.status in (200, 204), reply
    holder.check_ended(since)


def set_hosts(there, hosts):
    query = ("mutation($props: ModifyDomainInput!) {modify_domain(name: \"default\","
             " props: $props) {ok msg}}")
    got = there.admin.post("/admin/gql", {"query": query, "variables": {
        "props": {"allowed_vfolder_hosts": hosts}}}).json
    assert got["data"]["modify_domain"]["ok"], got


def test_tokens_end_with_the_permission_on_a_host(there):
    guest, folder = there.make_person(), there.make_files(there.owner)
    there.lend(guest, folder)
    holder, since = Holder(there, guest, folder), time.monotonic()
    set_hosts(there, '{"local:volume1": ["create-vfolder", "download-file"]}')
    try:
        holder.check_ended(since, keeps_reading=True)
    finally:
        set_hosts(there, "{}")


# ---- while somebody is away ----

def answers(there, url):
    """The status; None if nobody answers yet."""
    try:
        return there.ask("GET", url)[0]
    except (OSError, http.client.HTTPException):
        return None


@pytest.mark.parametrize("killed", [["storage"], ["manager"], ["manager", "storage"]],
                         ids="+".join)
def test_a_kill_after_a_right_has_ended(there, killed):
    guest, folder = there.make_person(), there.make_files(there.owner)
    there.lend(guest, folder)
    read = there.url(guest, folder, "download", path="a.txt")
    own = there.url(there.owner, folder, "download", path="a.txt")
    begun = there.url(guest, folder, "upload", path="begun", size=10)
    assert there.patch(begun, b"12345", 0)[0] == 204 and answers(there, read) == 200
    assert leave(there, guest, folder).status == 200
    for name in killed:
        there.programs[name].kill()
    for name in killed:
        there.programs[name].start()
    if "storage" in killed:
        assert wait_for(lambda: answers(there, read), 60, "the storage host") in (403, 503)
    wait_for(lambda: answers(there, read) == 403, 60, "the token to end")
    wait_for(there.is_stored, 60, "the storage host to be connected")
    assert there.patch(begun, b"67890", 5)[0] == 403
    wait_for(lambda: answers(there, own) == 200, 60, "the owner's token")


def test_transfers_go_on_while_the_manager_restarts(there):
    folder = there.make_files(there.owner)
    holder = Holder(there, there.owner, folder)
    there.programs["manager"].kill()
    wait_for(lambda: not there.is_stored(), 30, "the connection to be lost")
    holder.check_kept()
    there.programs["manager"].start()
    wait_for(there.is_stored, 60, "the manager to be back")
    moved = holder.running_read.moved
    wait_for(lambda: holder.running_read.moved > moved + (1 << 20), 30, "the download to go on")
    holder.check_kept()
    holder.stop()


def test_a_manager_that_is_away_for_long():
    """Nothing counts that was confirmed more than a minute ago."""
    with Folders() as there:
        there.begin()
        folder = there.make_files(there.owner)
        holder = Holder(there, there.owner, folder)
        there.programs["manager"].kill()
        wait_for(lambda: not there.is_stored(), 30, "the connection to be lost")
        holder.check_kept()
        there.jump(wall=61, monotonic=61)
        running = (holder.running_read, holder.running_write, holder.running_pack)
        wait_for(lambda: all(t.ended for t in running), 30, "transfers to be cut")
        assert answers(there, holder.reads["file read"][1]) == 503
        there.programs["manager"].start()
        wait_for(lambda: answers(there, holder.reads["file read"][1]) == 200, 60, "the manager")
        assert there.offset(holder.begun) == 5
        assert there.patch(holder.begun, b"67890", 5)[0] == 204
        holder.stop()
        there.stop()


def test_a_restarted_storage_host_asks_first(there):
    """A token that it made itself a moment ago is refused until the manager answers."""
    folder = there.make_files(there.owner)
    url = there.url(there.owner, folder, "download", path="a.txt")
    assert answers(there, url) == 200
    there.programs["manager"].kill()
    there.programs["storage"].kill()
    there.programs["storage"].start()
    try:
        assert wait_for(lambda: answers(there, url), 60, "an answer") == 503
    finally:
        there.programs["manager"].start()
    wait_for(lambda: answers(there, url) == 200, 60, "the token to be accepted")


# ---- invitations ----

def offer(there, owner, guest, permission="ro"):
    """A folder that is offered, not accepted: its id, and the invitation."""
    folder = there.make_files(owner)
    assert owner.post(f"/folders/{folder}/invite", {"perm": permission, "user_ids": [guest.email]}
                      ).json["invited_ids"] == [guest.email]
    return folder, invitation(guest, folder)["id"]


def accept(guest, number):
    return guest.post("/folders/invitations/accept", {"inv_id": number})


def raise_to(owner, number, permission):
    return owner.post(f"/folders/invitations/update/{number}", {"perm": permission})


def give(there, folder, heir):
    assert there.admin.post("/folders/_/change-ownership",
                            {"vfolder": folder, "user_email": heir.email}).status == 200


def test_invitations_end_with_the_ownership(there):
    former, heir, guest = (there.make_person() for _ in range(3))
    folder, number = offer(there, former, guest)
    give(there, folder, heir)
    assert raise_to(former, number, "wd").status == 404
    assert invitation(guest, folder) is None and invitation(former, folder, sent=True) is None
    assert accept(guest, number).status == 404
    assert guest.get(f"/folders/{folder}").status == 404
    give(there, folder, former)  # what was offered once does not come back
    assert accept(guest, number).status == 404
    there.lend(guest, folder, "ro", former)
    assert guest.get(f"/folders/{folder}").json["permission"] == "ro"


def test_the_new_owner_sees_and_ends_what_was_shared(there):
    former, heir, guest = (there.make_person() for _ in range(3))
    folder = there.make_files(former)
    there.lend(guest, folder, "rw", former)
    give(there, folder, heir)
    shared = heir.get("/folders/_/shared").json["shared"]
    assert [guest.email] == [row["shared_to"]["email"] for row in shared
                             if uuid.UUID(row["vfolder_id"]) == uuid.UUID(folder)], shared
    for client in (former, guest):
        assert client.post("/folders/_/shared", {"vfolder": folder, "user": guest.id,
                                                 "perm": "wd"}).status in (403, 404)
    holder, since = Holder(there, guest, folder), time.monotonic()
    assert heir.post("/folders/_/shared", {"vfolder": folder, "user": guest.id, "perm": None}
                     ).status == 200
    holder.check_ended(since)


@pytest.mark.parametrize("status", ["inactive", "deleted"])
def test_invitations_of_somebody_who_was_put_out(there, status):
    inviter, guest = there.make_person(), there.make_person()
    folder, number = offer(there, inviter, guest)
    at = f"/aliquot/v1/users/{inviter.email}"
    assert there.admin.send("PATCH", at, {"status": status}).status in (200, 204)
    assert invitation(guest, folder) is None
    assert accept(guest, number).status == 404
    assert guest.get(f"/folders/{folder}").status == 404


def test_invitations_of_a_folder_in_the_trash(there):
    guest = there.make_person()
    folder, number = offer(there, there.owner, guest)
    assert there.owner.delete(f"/folders/{folder}").status == 204
    assert accept(guest, number).status == 404
    assert raise_to(there.owner, number, "wd").status == 404


def test_only_the_inviter_raises_what_is_offered(there):
    guest = there.make_person()
    folder, number = offer(there, there.owner, guest)
    assert raise_to(guest, number, "wd").status == 403
    assert raise_to(there.owner, number, "rw").status == 200
    assert accept(guest, number).status == 200
    assert guest.get(f"/folders/{folder}").json["permission"] == "rw"


# ---- volumes ----

@pytest.fixture(scope="module", name="joined")
def joined_fixture():
    """A storage host that has joined and does not run."""
    with Stored() as cluster:
        cluster.start_manager()
        cluster.start_storage()
        cluster.programs["storage"].stop()
        yield cluster
        cluster.stop()


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o770, 0o711, 0o755, 0o701, 0o704, 0o777, 0o1777])
def test_volumes_that_others_can_enter(joined, mode):
    place = joined.folder / "entered"
    place.mkdir(exist_ok=True)
    place.chmod(mode)
    where = {"ALIQUOT_STORAGE_VOLUMES": f"volume1:{joined.volume} entered:{place}"}
    said = joined.run("aliquot-storage", "--state", joined.state, "check", "storage", **where)
    if not mode & 7:
        assert "chmod" not in said.stdout, said
        joined.start_storage(**where)
        assert joined.programs["storage"].stop() == 0
        return
    words = f"the volume '{place}' has mode {mode:04o}"
    assert words in said.stdout and f"chmod 0700 {place}" in said.stdout, said
    done = joined.run("aliquot-storage", "--state", joined.state, "--listen",
                      f"127.0.0.1:{joined.port}", **where)
    assert done.returncode == 1
    assert words in done.stderr and f"chmod 0700 {place}" in done.stderr, done


def test_a_volume_that_is_opened_to_others_later(there):
    folder = there.make_files(there.owner)
    url = there.url(there.owner, folder, "download", path="a.txt")
    assert answers(there, url) == 200
    there.volume.chmod(0o755)
    try:
        status, _, body = there.ask("GET", url)
        assert status == 503 and b"'aliquot-storage check storage'" in body, body
        assert str(there.volume).encode() not in body
    finally:
        there.volume.chmod(0o700)
    assert answers(there, url) == 200
