# SPDX-License-Identifier: Apache-2.0
"""'aliquot folder cp', 'sync' and 'du': whole trees with all kinds of names, cut at many places and
gone on with, and two sides that become the same.
"""

import json
import os
import subprocess

import pytest

from client import USER
from cluster import wait_for
from cut_relay import CutRelay
from ports import free_port
from sparse import is_sparse, make_sparse
from storage import Stored
from world import BUILD

BIG = 6_000_000


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    """Clients reach the storage host through a relay."""
    with Stored() as made:
        made.start_manager()
        made.port = free_port()
        made.relay = CutRelay(made.port)
        made.public = f"http://127.0.0.1:{made.relay.port}"
        made.start_storage(ALIQUOT_STORAGE_PUBLIC_URL=made.public)
        wait_for(lambda: made.client().get("/folders/_/hosts").json["allowed"],
                 what="the storage host to be known")
        yield made
        made.relay.close()
        made.stop()


@pytest.fixture(name="do")
def do_fixture(cluster):
    """A command of the user's: what it prints, as JSON; a folder 'data' is there."""
    def do(*words, status=0, json_out=True):
        done = cluster.run("aliquot", "folder", *words, *(["-o", "json"] if json_out else []),
                           **cluster.cli_env(USER))
        assert done.returncode == status, (words, done.stdout, done.stderr)
        do.errors = done.stderr
        return json.loads(done.stdout) if json_out and done.stdout else done.stdout
    do("create", "data")
    yield do
    cluster.relay.let_go()
    cluster.relay.limits = []
    for row in cluster.client(USER).get("/aliquot/v1/folders").json["items"]:
        cluster.client(USER).delete(f"/folders/{row['id']}/force")


def place(cluster):
    row, = [row for row in cluster.client(USER).get("/aliquot/v1/folders").json["items"]
            if row["status"] == "ready"]
    id_ = row["id"].replace("-", "")
    return cluster.volume / id_[:2] / id_[2:4] / id_[4:]


def make_tree(root):
    """Files of all kinds of names and sizes."""
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    for number in range(700):
        (root / "sub" / f"f{number}").write_bytes(os.urandom(number * 7))
    (root / "sub" / "deep" / "new\nline").write_bytes(b"x")
    (root / ("n" * 255)).write_bytes(b"long")
    with open(os.fsencode(root) + b"/bad\xff\xfe", "wb") as made:
        made.write(b"bad")
    (root / "\uef80").write_bytes(b"looks like a byte")
    (root / "run.sh").write_bytes(b"#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    os.utime(root / "run.sh", ns=(0, 1_500_000_000_123_456_000))
    (root / "big").write_bytes(os.urandom(BIG))
    return root


def tree_of(root):
    """Path -> what is there, time and mode included."""
    found = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in folders:
            found[os.path.relpath(os.path.join(folder, name), os.fsencode(root))] = None
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as opened:
                found[os.path.relpath(path, os.fsencode(root))] = (
                    opened.read(), os.stat(path).st_mtime_ns // 1000, os.stat(path).st_mode)
    found.pop(b".aliquot-uploads", None)
    return found


@pytest.mark.gate
def test_a_tree_there_and_back(cluster, do, tmp_path):
    source = make_tree(tmp_path / "source")
    os.symlink("/etc/passwd", source / "link")
    os.mkfifo(source / "fifo")
    done = do("cp", "-r", str(source), "data:")
    assert (done["files"], done["failed"], done["skipped"]) == (706, 0, 2)
    assert "link" in do.errors and "fifo" in do.errors
    for name in ("link", "fifo"):
        (source / name).unlink()
    assert tree_of(place(cluster) / "source") == tree_of(source)
    again = do("cp", "-r", str(source), "data:")
    assert (again["files"], again["bytes"], again["unchanged"]) == (0, 0, 706)
    assert do("cp", "-r", "data:source", str(tmp_path / "back"))["files"] == 706
    assert tree_of(tmp_path / "back") == tree_of(source)
    assert do("cp", "-r", "data:source", str(tmp_path / "back"))["unchanged"] == 706
    rows = {row["name"]: row["bytes"] for row in do("du", "data:source")}
    assert rows["big"] == BIG and rows["sub"] == sum(7 * n for n in range(700)) + 1


def test_holes_stay_holes(cluster, do, tmp_path):
    """Of files that go alone and of those that go with others, both ways; sizes are those of all."""
    made = [make_sparse(tmp_path / "source" / name, size)
            for name, size in (("large", 40 << 20), ("small", 400 << 10), ("less", 300 << 10))]
    assert do("cp", "-r", str(tmp_path / "source"), "data:")["bytes"] == \
        sum(path.stat().st_size for path in made)
    rows = {row["name"]: row["bytes"] for row in do("du", "data:source")}
    do("cp", "-r", "data:source", str(tmp_path / "back"))
    for path in made:
        assert rows[path.name] == path.stat().st_size
        for there in (place(cluster) / "source", tmp_path / "back"):
            assert (there / path.name).read_bytes() == path.read_bytes()
            assert is_sparse(there / path.name), (there, path.name)


def test_links_are_left_out_or_followed(cluster, do, tmp_path):
    """Followed within what is copied, and once; each that is not is named, and they are counted."""
    source = tmp_path / "source"
    (source / "dir" / "deep").mkdir(parents=True)
    (source / "file").write_bytes(b"text")
    (source / "dir" / "inner").write_bytes(b"inner")
    (tmp_path / "secret").write_bytes(b"secret")
    for name, target in (("to-file", "dir/../file"), ("to-dir", "dir"), ("dir/deep/up", ".."),
                         ("out", "../secret"), ("absolute", "/etc/passwd"), ("nowhere", "missing"),
                         ("self", "self")):
        os.symlink(target, source / name)
    for command, more in (("cp", ["-r"]), ("sync", [])):
        text = do(command, *more, str(source), f"data:{command}", json_out=False)
        assert do.errors.count("it is a symbolic link") == 7, (text, do.errors)
        assert "7 links or other special files left out" in do.errors + text
        text = do(command, *more, "-L", str(source), f"data:{command}-L", json_out=False)
        for name, why in (("out", "link out of"), ("absolute", "link out of"), ("nowhere", "to nothing"),
                          ("self", "to nothing"), ("dir/deep/up", "link to a directory")):
            assert any(name in line and why in line for line in do.errors.splitlines()), (name, do.errors)
        got = {os.fsdecode(path): what and what[0] for path, what in
               tree_of(place(cluster) / f"{command}-L").items()}
        assert got == {"file": b"text", "to-file": b"text", "dir": None, "dir/deep": None,
                       "dir/inner": b"inner", "to-dir": None, "to-dir/deep": None,
                       "to-dir/inner": b"inner", "dir/deep/up": None, "dir/deep/up/deep": None,
                       "dir/deep/up/inner": b"inner"}
        assert not [path for path in place(cluster).rglob("*") if path.is_symlink()]
    done = do("cp", "-rL", str(source), "data:cp-L")
    assert (done["files"], done["skipped"]) == (0, 6), done
    assert do("cp", "-rL", "data:cp-L", str(tmp_path / "back"), status=2) == ""


def test_very_many_directories(cluster, do, tmp_path):
    """Several are asked for at a time."""
    wide = place(cluster) / "wide"
    for number in range(2000):
        (wide / f"d{number % 40}" / f"e{number}").mkdir(parents=True)
        (wide / f"d{number % 40}" / f"e{number}" / "f").write_bytes(b"x")
    done = do("cp", "-r", "data:wide", str(tmp_path / "wide"))
    assert (done["files"], done["failed"]) == (2000, 0)
    assert tree_of(tmp_path / "wide") == tree_of(wide)


def test_names_of_what_is_copied(cluster, do, tmp_path):
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "two").write_bytes(b"2")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "in").write_bytes(b"3")
    os.symlink("one", tmp_path / "link")
    here = str(tmp_path)
    do("cp", f"{here}/one", "data:a/b/renamed")
    do("cp", f"{here}/one", f"{here}/two", "data:a")
    do("cp", f"{here}/two", "data:a/b")
    do("cp", f"{here}/link", "data:")
    do("cp", "-r", f"{here}/dir/.", "data:content")
    do("cp", "-r", f"{here}/dir", "data:a/")
    assert sorted(str(path.relative_to(place(cluster))) for path in place(cluster).rglob("*")
                  if path.is_file()) == ["a/b/renamed", "a/b/two", "a/dir/in", "a/one", "a/two",
                                         "content/in", "link"]
    do("cp", "data:a/one", f"{here}/new")
    do("cp", "data:a/one", "data:a/two", f"{here}/several")
    do("cp", "-r", "data:a", f"{here}/several/")
    assert (tmp_path / "new").read_bytes() == b"1"
    assert (tmp_path / "several" / "a" / "b" / "renamed").read_bytes() == b"1"
    assert "-r" in do("cp", f"{here}/dir", "data:", status=2) + do.errors
    do("cp", "data:missing", here, status=5)
    do("cp", f"{here}/missing", "data:", status=5)
    do("cp", f"{here}/one", f"{here}/two", status=2)


def test_what_cannot_be_copied_is_said_and_the_rest_goes_on(cluster, do, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for number in range(20):
        (source / f"f{number}").write_bytes(b"x")
    (place(cluster) / "source" / "f7").mkdir(parents=True)
    done = do("cp", "-r", str(source), "data:source", status=1)
    assert (done["files"], done["failed"]) == (19, 1) and "f7" in do.errors
    (tmp_path / "back" / "f3").mkdir(parents=True)
    done = do("cp", "-r", "data:source", str(tmp_path / "back"), status=1)
    assert (done["files"], done["failed"]) == (18, 1) and "f3" in do.errors


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_line_that_breaks_ten_times(cluster, do, tmp_path, way):
    source = tmp_path / "big"
    source.write_bytes(os.urandom(BIG))
    if way == "down":
        do("cp", str(source), "data:")
    cluster.relay.limits, cluster.relay.cuts = [200_000 + 30_000 * n for n in range(10)], 0
    cluster.relay.carried = 0
    done = do("cp", str(source), "data:") if way == "up" else do("cp", "data:big", str(tmp_path / "new"))
    assert cluster.relay.cuts == 10 and "trying again" in do.errors
    assert (done["files"], done["bytes"]) == (1, BIG) and cluster.relay.carried < 1.5 * BIG
    got = place(cluster) / "big" if way == "up" else tmp_path / "new"
    assert got.read_bytes() == source.read_bytes()
    assert got.stat().st_mtime_ns // 1000 == source.stat().st_mtime_ns // 1000
    assert not list(tmp_path.glob(".aliquot-*"))
    assert not list((place(cluster) / ".aliquot-uploads").glob("*"))


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_command_that_is_killed_ten_times(cluster, do, tmp_path, way):
    """kill -9 at ten places of a large file and a batch; nothing is sent from its beginning again."""
    source = make_tree(tmp_path / "source")
    if way == "down":
        do("cp", "-r", str(source), "data:")
    words = ["-r", str(source), "data:source"] if way == "up" else ["-r", "data:source", str(tmp_path / "new")]
    whole = BIG + sum(7 * n for n in range(700))
    for turn in range(10):
        cluster.relay.carried, cluster.relay.hold = 0, 150_000 + 200_000 * turn
        with subprocess.Popen([BUILD / "aliquot", "folder", "cp", *words], stderr=subprocess.DEVNULL,
                              env={**cluster.env, **cluster.cli_env(USER)}) as begun:
            if wait_until(lambda: cluster.relay.held.is_set() or begun.poll() is not None):
                begun.kill()
        cluster.relay.let_go()
    done = do("cp", *words)
    assert done["failed"] == 0 and done["bytes"] < whole
    got = place(cluster) / "source" if way == "up" else tmp_path / "new"
    assert tree_of(got) == tree_of(source)


def wait_until(what):
    wait_for(what, 60, "the copy to be held")
    return True


@pytest.mark.parametrize("way", ["up", "down"])
def test_the_storage_host_is_killed_meanwhile(cluster, do, tmp_path, way):
    source = make_tree(tmp_path / "source")
    if way == "down":
        do("cp", "-r", str(source), "data:")
    words = ["-r", str(source), "data:source"] if way == "up" else ["-r", "data:source", str(tmp_path / "new")]
    cluster.relay.carried, cluster.relay.hold = 0, 2_000_000
    with subprocess.Popen([BUILD / "aliquot", "folder", "cp", *words, "-o", "json"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**cluster.env, **cluster.cli_env(USER)}) as begun:
        wait_until(cluster.relay.held.is_set)
        cluster.programs["storage"].kill()
        cluster.relay.let_go()
        cluster.start_storage(ALIQUOT_STORAGE_PUBLIC_URL=cluster.public)
        out, errors = begun.communicate(timeout=120)
    assert begun.returncode == 0 and json.loads(out)["failed"] == 0, errors
    assert tree_of(place(cluster) / "source" if way == "up" else tmp_path / "new") == tree_of(source)


def test_sync_both_ways(cluster, do, tmp_path):
    source = make_tree(tmp_path / "source")
    plan = do("sync", "-n", str(source), "data:copy", json_out=False)
    assert "copy    big" in plan and "mkdir   empty" in plan and not (place(cluster) / "copy").exists()
    assert do("sync", str(source), "data:copy")["files"] == 706
    assert tree_of(place(cluster) / "copy") == tree_of(source)
    (source / "run.sh").write_bytes(b"#!/bin/bash\n")
    (source / "sub" / "f1").unlink()
    (source / "sub" / "deep" / "new\nline").unlink()
    (source / "sub" / "deep").rmdir()
    (source / "sub" / "deep").write_bytes(b"a file now")
    (source / "empty").rmdir()
    done = do("sync", str(source), "data:copy", status=1)
    assert (done["files"], done["failed"], done["removed"]) == (1, 1, 0) and "deep" in do.errors
    text = do("sync", "--delete", str(source), "data:copy", json_out=False)
    assert "remove  empty" in text and "remove  sub/deep" in text and "copy    sub/deep" not in text
    assert tree_of(place(cluster) / "copy") == tree_of(source)
    other = tmp_path / "other"
    do("sync", "data:copy", str(other))
    assert tree_of(other) == tree_of(source)
    (place(cluster) / "copy" / "sub" / "f5").unlink()
    (other / "extra").mkdir()
    (other / "extra" / "x").write_bytes(b"x")
    (other / "sub" / "f9").write_bytes(b"changed here")
    done = do("sync", "--delete", "data:copy", str(other))
    assert (done["files"], done["removed"]) == (1, 2)
    assert tree_of(other) == tree_of(place(cluster) / "copy")


def test_a_folder_that_is_full_ends_the_copy(cluster, do, tmp_path):
    do("create", "small", "--quota", "1m")
    (tmp_path / "big").write_bytes(os.urandom(BIG))
    do("cp", str(tmp_path / "big"), "small:", status=7)
    assert "room" in do.errors
