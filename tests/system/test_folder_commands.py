# SPDX-License-Identifier: Apache-2.0
"""'aliquot folder' and what it makes of folders on a storage host."""

import csv
import io
import json
import os
import threading
import urllib.parse

import pytest

from client import ADMIN, USER
from cluster import wait_for
from database import sql
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


@pytest.fixture(name="large")
def large_fixture(do, cluster):
    """The place of a folder with files for three pages: names that others made, of any bytes."""
    do("create", "large")
    id_ = rows(do("info", "large", "-o", "json"))["id"]
    place = os.fsencode(cluster.volume / id_[:2] / id_[2:4] / id_[4:])
    odd = [b"\xff" * 255, b"a\nb,\"c\"", b"\xc3\xa4" * 127 + b"\x80"]
    names = sorted([b"%05d" % number for number in range(24_000)] + odd)
    for name in names:
        open(os.path.join(place, name), "wb").close()
    return place, names


def raw(name):
    """A name as JSON has it, as bytes: those of no UTF-8 are characters from U+EF80 on."""
    return b"".join(bytes([ord(c) - 0xEF00]) if 0xEF80 <= ord(c) <= 0xEFFF else c.encode()
                    for c in name)


def test_any_number_of_files_is_listed(do, large):
    _, names = large
    assert [raw(row["name"]) for row in rows(do("files", "large", "-o", "json"))] == names
    lines = do("files", "large", "-o", "jsonl").splitlines()
    assert [raw(json.loads(line)["name"]) for line in lines] == names
    table = do("files", "large").splitlines()
    assert len(table) == len(names) + 1 and table[0].split() == ["MODE", "SIZE", "AGE", "NAME"]
    assert [line.split()[-1] for line in table[1:24_001]] == [f"{n:05d}" for n in range(24_000)]
    assert table[-3].endswith(' a b,"c"')
    found = list(csv.DictReader(io.StringIO(do("files", "large", "-o", "csv"))))
    assert [raw(row["name"]) for row in found] == names
    backwards = rows(do("files", "large", "-o", "json", "--sort=-name", "--columns", "name"))
    assert len(backwards) == len(names) and backwards[-1]["name"] == "00000"
    assert rows(do("files", "large", "00007", "-o", "json"))[0]["name"] == "00007"


def test_files_that_stay_are_listed_whatever_is_written_meanwhile(do, large):
    """Each one once and in order, while others come and go among them."""
    place, names = large
    is_over = threading.Event()

    def write():
        number = 0
        while not is_over.is_set():
            path = os.path.join(place, b"%05d-new" % (number % 24_000))
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            os.unlink(path)
            number += 97
    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = [raw(row["name"]) for row in rows(do("files", "large", "-o", "json"))]
    finally:
        is_over.set()
        writer.join()
    assert found == sorted(set(found))
    assert [name for name in found if not name.endswith(b"-new")] == names


def test_a_page_whose_files_have_gone_is_not_the_last(do, cluster, large):
    """Of a page of one file that is removed while it is listed, the next one is the answer."""
    place, names = large
    client = cluster.client(USER)
    is_over = threading.Event()

    def write():
        path = os.path.join(place, b"00000-new")
        while not is_over.is_set():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            os.unlink(path)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        pages = [client.get("/folders/large/files?limit=1&after=00000").json for _ in range(150)]
    finally:
        is_over.set()
        writer.join()
    assert {page["items"][0]["name"] for page in pages} <= {"00000-new", "00001"}
    assert all(page["more"] for page in pages)
    last = client.get("/folders/large/files?limit=1&after=" + urllib.parse.quote("\uefff" * 254)).json
    assert raw(last["items"][0]["name"]) == names[-1] and not last["more"]
    assert client.get("/folders/large/files?limit=1&after=" + "x" * 256).status == 400


def test_files_lie_where_the_id_says(do, cluster):
    do("create", "data")
    id_ = rows(do("info", "data", "-o", "json"))["id"]
    place = cluster.volume / id_[:2] / id_[2:4] / id_[4:]
    (place / "made here").write_bytes(os.urandom(100))
    assert rows(do("files", "data", "-o", "json"))[0]["name"] == "made here"
    assert rows(do("info", "data", "-o", "json"))["used_bytes"] == 100


def test_sizes_of_a_list_follow_what_arrives(do, cluster):
    """Nobody asks for a count: what is sent, removed and cloned is measured by the storage host."""
    def listed(name):
        (row,) = [row for row in rows(do("ls", "-o", "json")) if row["name"] == name]
        return row["num_files"], row["used_bytes"], row["measured_at"]

    def awaits(name, *size):
        wait_for(lambda: listed(name)[:2] == size, 60, lambda: f"{size}: {listed(name)}")
        return listed(name)[2]

    do("create", "data", "--cloneable")
    at = awaits("data", 0, 0)
    source = cluster.folder / "sent"
    source.mkdir()
    for number in range(30):
        (source / str(number)).write_bytes(b"x" * 1000)
    (source / "large").write_bytes(b"y" * 3_000_000)
    do("cp", "-r", source, "data:in")
    at, before = awaits("data", 31, 3_030_000), at
    assert at > before
    do("rm-file", "data", "in/large", "in/0")
    awaits("data", 29, 29_000)
    do("clone", "data", "copy")
    awaits("copy", 29, 29_000)
    assert "MEASURED" in do("ls", "-o", "wide").splitlines()[0]
    (source / "late").write_bytes(b"z" * 500)
    do("cp", source / "late", "copy:late")
    cluster.programs["manager"].kill()  # before it was told
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 60, "the manager")
    wait_for(lambda: cluster.client().get("/folders/_/hosts").json["allowed"], 60, "the storage host")
    awaits("copy", 30, 29_500)


def test_what_was_never_measured_is_at_the_start(do, cluster):
    """As with a manager that kept no time of a measurement: nothing is shown until there is one."""
    do("create", "data")
    id_ = rows(do("info", "data", "-o", "json"))["id"]
    place = cluster.volume / id_[:2] / id_[2:4] / id_[4:]
    (place / "made here").write_bytes(os.urandom(100))
    cluster.programs["manager"].stop()
    sql(cluster, "UPDATE folders SET counted_at = NULL, files = 0, bytes = 0 WHERE name = 'data'")
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 60, "the manager")

    def shown():
        (row,) = rows(do("ls", "-o", "json"))
        return row["num_files"], row["used_bytes"]
    assert shown() in ((None, None), (1, 100))
    wait_for(lambda: shown() == (1, 100), 60, "its size")


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
