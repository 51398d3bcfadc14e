# SPDX-License-Identifier: Apache-2.0
"""The configuration tree from the command line, under Backend.AI's names too: what its manuals say
to type, exports that come back, and kill -9 while it changes.
"""

import json
import os
import shlex
import stat
import subprocess
import threading

import pytest

from client import ADMIN, USER
from cluster import Cluster, wait_for
from world import BUILD

pytestmark = [pytest.mark.engines, pytest.mark.gate]

TREE = {"config": {"docker": {"registry": {"r.example:5000": {"": "https://r", "type": "docker"}}},
                   "redis": {"addr": "127.0.0.1:6379"}},
        "manager": {"announcement": "Tonight\nat 18:00"}, "odd /%": "\u00fc"}


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        names = made.folder / "names"
        names.mkdir()
        (names / "backend.ai").symlink_to(BUILD / "aliquot")
        made.start_manager()
        yield made
        made.stop()


@pytest.fixture(autouse=True)
def empty(cluster):
    yield
    assert cluster.cli("admin", "config", "rm", "--prefix", "").returncode == 0


def shell(cluster, line, keypair=ADMIN):
    """A line as an administrator types it, in a directory of the test."""
    env = {**cluster.env, **cluster.cli_env(keypair),
           "PATH": f"{cluster.folder / 'names'}:{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", line], env=env, cwd=cluster.folder, text=True,
                          capture_output=True, timeout=120)


def does(cluster, *words, **more):
    done = cluster.cli("admin", "config", *words, **more)
    assert done.returncode == 0, done
    return done.stdout


def put(cluster, tree):
    (cluster.folder / "tree.json").write_text(json.dumps(tree))
    return does(cluster, "import", cluster.folder / "tree.json")


def whole(cluster):
    return json.loads(does(cluster, "export"))


def test_one_value(cluster):
    done = cluster.cli("admin", "config", "set", "a/b", "x")
    assert done.returncode == 0 and not done.stdout
    assert "kept, without effect" in done.stderr and "'a/b'" in done.stderr
    assert does(cluster, "get", "a/b") == "x\n"
    assert json.loads(does(cluster, "get", "a/b", "-o", "json")) == "x"
    assert does(cluster, "get", "--prefix", "a") == '{\n    "b": "x"\n}\n'
    done = cluster.cli("admin", "config", "get", "a")
    assert done.returncode == 5 and "--prefix 'a'" in done.stderr
    done = cluster.cli("admin", "config", "set", "manager/announcement", "Tonight")
    assert done.returncode == 0 and not done.stderr
    answer = json.loads(does(cluster, "set", "a/b", "y", "-o", "json"))
    assert answer["changed"] == 1 and answer["without_effect"] == ["a/b"]
    does(cluster, "move", "a", "c")
    does(cluster, "rm", "c/b")
    done = cluster.cli("admin", "config", "rm", "c/b")
    assert done.returncode == 0 and "nothing at 'c/b'" in done.stderr


def test_export_and_import(cluster):
    assert put(cluster, TREE) == "5 new, 0 changed, 0 as they were\n"
    assert whole(cluster) == TREE
    file = cluster.folder / "backup.json"
    does(cluster, "export", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and json.loads(file.read_text()) == TREE
    does(cluster, "rm", "--prefix", "config")
    assert does(cluster, "import", "--dry-run", file) == (
        "would be: 3 new, 0 changed, 2 as they were\n")
    assert "config" not in whole(cluster)
    for line in ("import - < backup.json", "export | aliquot admin config import -"):
        line = f"aliquot admin config {line}".replace("aliquot", shlex.quote(str(BUILD / "aliquot")))
        assert shell(cluster, line).returncode == 0
        assert whole(cluster) == TREE
    does(cluster, "import", "below", file)
    assert whole(cluster) == {**TREE, "below": TREE}


@pytest.mark.parametrize("text, word", (
    ("", "JSON"), ("[]", "object"), ('{"a": 1, "a": 2}', "line 1"), ('{"a":', "line 1"),
    ('{"manager": {"status": "banana"}, "fine": "1"}', "manager/status"),
    ('{"fine": "1", "a": ["x"]}', "a")))
def test_files_that_cannot_be(cluster, text, word):
    (cluster.folder / "bad.json").write_text(text)
    for more in ([], ["--dry-run"]):
        done = cluster.cli("admin", "config", "import", *more, cluster.folder / "bad.json")
        assert done.returncode == 4 and word in done.stderr, done
    assert whole(cluster) == {}


@pytest.mark.parametrize("words", (("get", "\udcff"), ("set", "a", "\udcff"), ("rm", "\udcff"),
                                   ("move", "a", "\udcff"), ("import", "\udcff", "-")))
def test_words_that_cannot_be(cluster, words):
    done = cluster.cli("admin", "config", *words)
    assert done.returncode in (2, 4) and done.stderr, done


def test_nobody_else(cluster):
    done = cluster.run("aliquot", "admin", "config", "export", **cluster.cli_env(USER))
    assert done.returncode == 6, done


# ---- Backend.AI's spelling ----

def test_the_manual_of_backendai(cluster):
    """Both commands of its guide, word for word."""
    put(cluster, TREE)
    done = shell(cluster, "backend.ai mgr etcd get --prefix '' > etcd_backup.json")
    assert done.returncode == 0, done
    backup = (cluster.folder / "etcd_backup.json").read_text()
    assert backup.lower() == json.dumps(json.loads(backup.lower()), indent=4) + "\n"
    assert json.loads(backup) == TREE
    does(cluster, "rm", "--prefix", "")
    done = shell(cluster, "backend.ai mgr etcd put-json '' etcd_backup.json")
    assert done.returncode == 0, done
    assert whole(cluster) == TREE


def test_commands_of_backendai(cluster):
    def bai(line):
        return shell(cluster, "backend.ai mgr etcd " + line)

    assert bai("put config/redis/addr 127.0.0.1:6379").returncode == 0
    done = bai("get config/redis/addr")
    assert (done.returncode, done.stdout) == (0, "127.0.0.1:6379\n")
    done = bai("get no/such")
    assert (done.returncode, done.stdout) == (1, "")
    assert bai("get").returncode == 2
    assert bai("put -s sgroup/default idle/enabled network_timeout").returncode == 0
    assert bai("move-subtree config/redis config/valkey").returncode == 0
    assert json.loads(bai("get --prefix ''").stdout) == {
        "config": {"valkey": {"addr": "127.0.0.1:6379"}},
        "sgroup": {"default": {"idle": {"enabled": "network_timeout"}}}}
    assert bai("delete --prefix config").returncode == 0
    assert bai("delete sgroup/default/idle/enabled").returncode == 0
    assert whole(cluster) == {}
    for line in ("aliquot admin etcd put a b", "aliquot mgr etcd put a b"):
        assert shell(cluster, line.replace("aliquot", shlex.quote(str(BUILD / "aliquot")))).returncode == 0
    assert cluster.cli("mgr", "etcd", "get", "no/such").returncode == 5  # not by that name


# ---- kill -9 ----

def test_kill(cluster):
    """What was acknowledged is there, and an import is there with its audit entry or is not."""
    client, acknowledged = cluster.client(), set()

    def entries():
        return client.get("/aliquot/v1/audit-log?action=set-config&limit=1").json["total"]

    def load(number):
        for i in range(1000):
            try:
                reply = client_of[number].post("/aliquot/v1/config/import", {
                    "tree": {f"{number}-{i}": {str(j): "x" for j in range(5)}}})
            except OSError:
                return
            if reply.status != 200:
                return
            acknowledged.add(f"{number}-{i}")

    for round_ in range(3):
        client_of = [cluster.client() for _ in range(3)]
        before, entries_before = len(acknowledged), entries()
        threads = [threading.Thread(target=load, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(acknowledged) >= before + 20, 60, "imports")
        cluster.programs["manager"].kill()
        for thread in threads:
            thread.join()
        cluster.programs["manager"].start()
        wait_for(cluster.is_serving, 60, "the manager")
        kept = client.post("/config/get", {"key": "", "prefix": True}).json["result"]
        assert acknowledged <= set(kept), (round_, acknowledged - set(kept))
        assert all(len(values) == 5 for values in kept.values())
        assert entries() == entries_before + len(kept)
        does(cluster, "rm", "--prefix", "")
        acknowledged.clear()
    cluster.check_audits()
