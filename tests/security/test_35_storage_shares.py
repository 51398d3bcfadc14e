# SPDX-License-Identifier: Apache-2.0
"""One user of a storage host leaves room for the others: transfers and their memory, counts and other
work on whole trees, the modes of files, and the quota of a folder."""

import concurrent.futures
import contextlib
import io
import os
import re
import signal
import socket
import stat
import tarfile
import urllib.request
import uuid

import pytest

from client import DOMAIN_ADMIN, USER
from cluster import wait_for
from ports import free_port
from shared_folders import Folders

MIB = 1 << 20
TRANSFERS = 256  # max-transfers of the storage host


@pytest.fixture(scope="module")
def cluster():
    with Folders() as cluster:
        cluster.metrics = free_port()
        cluster.begin(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{cluster.metrics}",
                      ASAN_OPTIONS="quarantine_size_mb=0:thread_local_quarantine_size_kb=0")
        yield cluster
        cluster.stop()


def status_of(cluster, name):
    text = open(f"/proc/{cluster.programs['storage'].pid}/status", encoding="ascii").read()
    return re.search(rf"^{name}:\s+(\w+)", text, re.MULTILINE)[1]


def metric(cluster, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.metrics}/metrics", timeout=30) as reply:
        return float(re.search(rf"^aliquot_storage_{name} (\S+)", reply.read().decode(),
                               re.MULTILINE)[1])


class Slow:
    """Clients that ask for a file and take its head alone."""

    def __init__(self, cluster):
        self.cluster, self.sockets = cluster, []

    def begin(self, url):
        """The status of the answer."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.connect(("127.0.0.1", self.cluster.port))
        self.sockets.append(client)
        client.sendall(f"GET {url} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        return int(client.recv(12).split()[1])

    def close(self):
        for client in self.sockets:
            client.close()


@pytest.fixture
def slow(cluster):
    with contextlib.closing(Slow(cluster)) as slow:
        yield slow
    wait_for(lambda: metric(cluster, "transfers") == 0, 60, "the transfers' end")


def make_file(cluster, folder, size):
    path = cluster.place(folder) / "large"
    path.touch()
    os.truncate(path, size)


# ---- transfers ----

def upload(cluster, person, folder, name):
    return cluster.patch(cluster.url(person, folder, "upload", path=name, size=1000), bytes(1000), 0)[0]


def test_slow_downloads_of_one_leave_slots_for_others(cluster, slow):
    one, other = cluster.make_person(), cluster.make_person()
    url = cluster.url(one, cluster.make_files(one), "download", file="large")
    folder = cluster.make_files(other)
    statuses = [slow.begin(url) for _ in range(TRANSFERS)]
    assert set(statuses) == {200, 503}
    assert TRANSFERS / 4 < statuses.count(200) < TRANSFERS / 2
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        done = list(pool.map(lambda n: upload(cluster, other, folder, f"file{n}"), range(48)))
    assert done == [204] * 48
    assert slow.begin(url) == 503
    status, headers, body = cluster.ask("GET", url)
    assert (status, headers["Retry-After"]) == (503, "1") and b"share" in body


def test_a_folder_that_many_read_leaves_slots_for_others(cluster, slow):
    """Each of its readers has less than the share of a user."""
    owner, readers = cluster.make_person(), [cluster.make_person() for _ in range(8)]
    folder = cluster.make_files(owner)
    for reader in readers:
        cluster.lend(reader, folder, "ro", owner)
    urls = [cluster.url(reader, folder, "download", file="large") for reader in readers]
    statuses = [slow.begin(url) for url in urls for _ in range(TRANSFERS // 16)]
    assert set(statuses) == {200, 503}
    assert statuses.count(200) < TRANSFERS / 2
    assert upload(cluster, owner, cluster.make_files(owner), "file") == 204


def test_slow_downloads_hold_little_memory(cluster, slow):
    before = int(status_of(cluster, "VmRSS"))
    for _ in range(3):
        person = cluster.make_person()
        url = cluster.url(person, cluster.make_files(person), "download", file="large")
        assert [slow.begin(url) for _ in range(50)] == [200] * 50
    wait_for(lambda: metric(cluster, "transfers") == 150, 60, "the transfers")
    wait_for(lambda: metric(cluster, "bytes_out_total") >= 150 * 200_000, 60, "their bytes")
    assert int(status_of(cluster, "VmHWM")) - before < 150 * 600  # KiB


# ---- modes ----

def archive(number):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, mode in (("open", 0o666), ("program", 0o777)):
            info = tarfile.TarInfo(f"d{number}/{name}")
            info.mode, info.size = mode, 1
            tar.addfile(info, io.BytesIO(b"x"))
    return out.getvalue()


def test_archives_at_one_time_leave_the_umask(cluster):
    folder = cluster.make_folder()
    url = "/archive?token=" + cluster.token("upload", folder, "", tree=True, size=0, quota=0)
    before = status_of(cluster, "Umask")
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        done = list(pool.map(lambda n: cluster.ask("PUT", url, archive(n))[0], range(300)))
    assert done == [204] * 300
    assert status_of(cluster, "Umask") == before == "0022"
    for number in range(300):
        place = cluster.place(folder) / f"d{number}"
        modes = [stat.S_IMODE(os.stat(path).st_mode)
                 for path in (place, place / "open", place / "program")]
        assert modes == [0o755, 0o644, 0o755], number


# ---- counts ----

FILES = 60_000


@pytest.fixture(scope="module")
def large(cluster):
    """A folder of the user whose files take a while to count."""
    made = cluster.client(USER).post("/folders", {"name": "large", "host": "local:volume1"})
    assert made.status == 201, made
    place = cluster.place(uuid.UUID(made.json["id"]))
    for number in range(FILES // 1000):
        (place / f"d{number}").mkdir()
        for file in range(1000):
            (place / f"d{number}/f{file}").touch()
    return "large"


class Counters:
    """Requests of one user for what a folder holds, each by a connection of its own."""

    def __init__(self, cluster, keypair):
        self.cluster, self.client, self.sockets = cluster, cluster.client(keypair), []

    def begin(self, name, count):
        path = f"/folders/{name}"
        for _ in range(count):
            head = "".join(f"{key}: {value}\r\n" for key, value in
                           self.client.headers("GET", path, "application/json").items())
            connection = socket.create_connection(self.cluster.address, timeout=60)
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {self.client.host}\r\n{head}\r\n"
                               .encode())
            self.sockets.append(connection)

    def statuses(self):
        return [int(connection.recv(12).split()[1]) for connection in self.sockets]

    def close(self):
        while self.sockets:
            self.sockets.pop().close()


@pytest.fixture
def counters(cluster):
    with contextlib.closing(Counters(cluster, USER)) as counters:
        yield counters


def small_work(cluster, name):
    """What takes a moment: of another user's folder."""
    client = cluster.client(DOMAIN_ADMIN)
    assert client.post("/folders", {"name": name, "host": "local:volume1"}).status == 201
    for number in range(5):
        assert client.post(f"/folders/{name}/mkdir", {"path": f"d{number}"}).status == 200
        assert client.get(f"/folders/{name}/files").status == 200
        assert client.post(f"/folders/{name}/rename-file",
                           {"target_path": f"d{number}", "new_name": f"e{number}"}).status < 300
        assert client.send("DELETE", f"/folders/{name}/delete-files",
                           {"files": [f"e{number}"], "recursive": True}).status < 300
    assert client.get(f"/folders/{name}").status == 200


@contextlib.contextmanager
def stopped(cluster):
    """What is asked of the storage host meanwhile has its answer afterwards."""
    os.kill(cluster.programs["storage"].pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(cluster.programs["storage"].pid, signal.SIGCONT)


def settle(cluster):
    """The manager has read what came before."""
    for _ in range(30):
        assert cluster.client().get("/folders").status == 200


def test_equal_counts_are_one(cluster, large, counters):
    before = metric(cluster, "counts_total")
    with stopped(cluster):
        counters.begin(large, 200)
        settle(cluster)
    assert set(counters.statuses()) == {200}
    assert 1 <= metric(cluster, "counts_total") - before < 20


def test_hundreds_of_counts_leave_short_work_alone(cluster, large, counters):
    """Also of folders of which each is counted for itself, in one lane."""
    for number in range(40):
        assert cluster.client(USER).post("/folders", {"name": f"own{number}",
                                                      "host": "local:volume1"}).status == 201
    counters.begin(large, 600)
    for number in range(40):
        counters.begin(f"own{number}", 10)
    small_work(cluster, "small")


def test_counts_end_with_their_clients(cluster, large, counters):
    before = metric(cluster, "counts_dropped_total")
    for _ in range(5):
        with stopped(cluster):
            counters.begin(large, 100)
            settle(cluster)
            counters.close()
            settle(cluster)
        small_work(cluster, f"small-{uuid.uuid4().hex[:8]}")
        if metric(cluster, "counts_dropped_total") > before:
            return
    raise AssertionError("no count has ended with its clients")


# ---- quotas ----

QUOTA = 1_000_000


def size_of(place):
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, size in files.items():
            info = tarfile.TarInfo(name)
            info.size = size
            tar.addfile(info, io.BytesIO(bytes(size)))
    return out.getvalue()


def test_a_full_folder_refuses_the_next_byte(cluster):
    folder = cluster.make_folder()
    (cluster.place(folder) / "full").write_bytes(bytes(QUOTA))
    status, _, body = cluster.patch(cluster.upload(folder, "next", 1, quota=QUOTA), b"x", 0)
    assert status == 413 and b"do not fit" in body
    url = "/archive?token=" + cluster.token("upload", folder, "", tree=True, size=0, quota=QUOTA)
    assert cluster.ask("PUT", url, tar_of({"next": 1}))[0] == 413
    assert size_of(cluster.place(folder)) == QUOTA


def test_a_token_is_not_worth_its_size_again_and_again(cluster):
    """A file that takes the place of another frees it; what is given up does, too."""
    folder = cluster.make_folder()
    for _ in range(5):
        url = cluster.upload(folder, "file", QUOTA // 2, quota=QUOTA)
        assert cluster.patch(url, bytes(QUOTA // 2), 0)[0] == 204
    url = cluster.upload(folder, "given-up", QUOTA // 2, quota=QUOTA)
    for _ in range(3):
        assert cluster.patch(url, bytes(QUOTA // 4), 0)[0] == 204
        assert cluster.ask("DELETE", url, Tus_Resumable="1.0.0")[0] == 204
    assert cluster.patch(url, bytes(QUOTA // 2), 0)[0] == 204
    assert cluster.patch(cluster.upload(folder, "more", 1, quota=QUOTA), b"x", 0)[0] == 413


def chunked_patch(cluster, url, size):
    """Without its length, so that only what has come can be held against the quota."""
    step = 50_000
    with contextlib.closing(socket.create_connection(("127.0.0.1", cluster.port), 60)) as client:
        client.sendall(f"PATCH {url} HTTP/1.1\r\nHost: a\r\nUpload-Offset: 0\r\n"
                       "Content-Type: application/offset+octet-stream\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n".encode())
        with contextlib.suppress(OSError):
            for _ in range(size // step):
                client.sendall(b"%x\r\n%s\r\n" % (step, bytes(step)))
            client.sendall(b"0\r\n\r\n")
        with contextlib.suppress(OSError):
            return int(client.recv(12).split()[1])
    return 0


def test_uploads_at_one_time_keep_the_quota(cluster):
    folder = cluster.make_folder()
    urls = [cluster.upload(folder, f"file{n}", 500_000, quota=QUOTA) for n in range(12)]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda url: chunked_patch(cluster, url, 500_000), urls))
    assert 413 in statuses
    assert QUOTA // 2 <= size_of(cluster.place(folder)) <= QUOTA


def test_archives_at_one_time_keep_the_quota(cluster):
    folder = cluster.make_folder()
    url = "/archive?token=" + cluster.token("upload", folder, "", tree=True, size=0, quota=QUOTA)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda n: cluster.ask("PUT", url, tar_of(
            {f"d{n}/f{k}": 100_000 for k in range(4)}))[0], range(12)))
    assert 413 in statuses and set(statuses) <= {204, 413}
    assert 0 < size_of(cluster.place(folder)) <= QUOTA


def test_parts_keep_the_quota(cluster):
    """One part may be named more than once: what they are together counts."""
    folder = cluster.make_folder()
    url = cluster.upload(folder, "whole", 1_500_000, quota=QUOTA * 2)
    begun = cluster.ask("POST", url, b"", Tus_Resumable="1.0.0", Upload_Length=500_000,
                        Upload_Concat="partial")
    assert begun[0] == 201
    part = begun[1]["Location"].split(str(cluster.port))[1]
    assert cluster.patch(part, bytes(500_000), 0)[0] == 204
    (cluster.place(folder) / "other").write_bytes(bytes(1))
    full = cluster.upload(folder, "fill", 600_000, quota=QUOTA * 2)
    assert cluster.patch(full, bytes(600_000), 0)[0] == 204
    joined = cluster.ask("POST", url, b"", Tus_Resumable="1.0.0",
                         Upload_Concat=f"final;{part} {part} {part}")
    assert joined[0] == 413
    assert size_of(cluster.place(folder)) == 1_100_001


def set_limit(cluster, size):
    query = ("mutation($props: ModifyUserResourcePolicyInput!) {"
             " modify_user_resource_policy(name: \"default\", props: $props) {ok msg}}")
    got = cluster.client().post("/admin/gql", {"query": query, "variables": {
        "props": {"max_vfolder_count": 0, "max_quota_scope_size": size}}}).json
    assert got["data"]["modify_user_resource_policy"]["ok"], got


def test_an_owners_limit_is_for_all_folders(cluster):
    """What one folder has come to hold counts for the next, without anybody looking at it."""
    client = cluster.client(USER)
    set_limit(cluster, QUOTA * 10)
    try:
        first, second = (client.post("/folders", {"name": f"limited{n}", "host": "local:volume1"})
                         .json["id"] for n in range(2))
        token = client.post(f"/folders/{first}/request-upload",
                            {"path": "file", "size": QUOTA * 9}).json["token"]
        assert cluster.patch("/upload?token=" + token, bytes(QUOTA * 9), 0)[0] == 204
        wait_for(lambda: client.post(f"/folders/{second}/request-upload",
                                     {"path": "file", "size": QUOTA * 2}).slug == "quota-exceeded",
                 60, "the manager to know")
        assert client.post(f"/folders/{second}/request-upload",
                           {"path": "file", "size": QUOTA // 2}).status == 200
    finally:
        set_limit(cluster, -1)
