# SPDX-License-Identifier: Apache-2.0
"""One user of a storage host leaves room for the others: transfers and their memory, counts and other
work on whole trees, the modes of files, and the quota of a folder."""

import concurrent.futures
import contextlib
import io
import os
import re
import socket
import stat
import tarfile
import urllib.request
import uuid

import pytest

from cluster import wait_for
from ports import free_port
from storage import Stored

MIB = 1 << 20
TRANSFERS = 256  # max-transfers of the storage host


@pytest.fixture(scope="module")
def cluster():
    with Stored() as cluster:
        cluster.metrics = free_port()
        cluster.start_manager()
        cluster.start_storage(ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{cluster.metrics}",
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

def upload(cluster, folder, user, name):
    return cluster.patch(cluster.upload(folder, name, 1000, user=str(user)), bytes(1000), 0)[0]


def test_slow_downloads_of_one_leave_slots_for_others(cluster, slow):
    folder, other, user = cluster.make_folder(), cluster.make_folder(), uuid.uuid4()
    make_file(cluster, folder, 64 * MIB)
    url = cluster.download(folder, "large", user=str(uuid.uuid4()))
    statuses = [slow.begin(url) for _ in range(TRANSFERS)]
    assert set(statuses) == {200, 503}
    assert TRANSFERS / 4 < statuses.count(200) < TRANSFERS / 2
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        done = list(pool.map(lambda n: upload(cluster, other, user, f"file{n}"), range(48)))
    assert done == [204] * 48
    assert slow.begin(url) == 503
    status, headers, body = cluster.ask("GET", url)
    assert (status, headers["Retry-After"]) == (503, "1") and b"share" in body


def test_a_folder_that_many_read_leaves_slots_for_others(cluster, slow):
    folder, other = cluster.make_folder(), cluster.make_folder()
    make_file(cluster, folder, 64 * MIB)
    statuses = [slow.begin(cluster.download(folder, "large", user=str(uuid.uuid4())))
                for _ in range(TRANSFERS // 2)]
    assert set(statuses) == {200, 503}
    assert statuses.count(200) < TRANSFERS / 2
    assert upload(cluster, other, uuid.uuid4(), "file") == 204


def test_slow_downloads_hold_little_memory(cluster, slow):
    before = int(status_of(cluster, "VmRSS"))
    for _ in range(3):
        folder, user = cluster.make_folder(), str(uuid.uuid4())
        make_file(cluster, folder, 64 * MIB)
        url = cluster.download(folder, "large", user=user)
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
