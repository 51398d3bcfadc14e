# SPDX-License-Identifier: Apache-2.0
"""One file with all that is durable of a cluster: made while it serves, read back on any engine."""

import fcntl
import os
import stat
import threading

import pytest

from cluster import Cluster, batch, wait_for, wait_status

pytestmark = pytest.mark.engines

SESSIONS = "/aliquot/v1/sessions"


def submit(client, name, command="true"):
    reply = client.post("/session", batch(name, command))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as running:
        (running.folder / "passphrase").write_text("correct horse\n")
        (running.folder / "passphrase").chmod(0o600)
        running.start_manager()
        running.start_agent()
        # what cannot be compressed: a backup has several pieces
        (running.folder / "manager" / "ca" / "bytes").write_bytes(os.urandom(200000))
        for i in range(5):
            wait_status(running.client(), submit(running.client(), f"ended-{i}"), "TERMINATED")
        yield running


def backup(cluster, verb, path, *more, passphrase="passphrase", **settings):
    return cluster.run("aliquot-manager", "backup", verb, path, "--state",
                       cluster.folder / "manager", "--passphrase-file",
                       cluster.folder / passphrase, *more, **settings)


def make(cluster, name="one.backup"):
    path = cluster.folder / name
    path.unlink(missing_ok=True)
    done = backup(cluster, "create", path)
    assert done.returncode == 0, done
    return path


def restore(cluster, path, state, **settings):
    return cluster.run("aliquot-manager", "backup", "restore", path, "--state", state,
                       "--passphrase-file", cluster.folder / "passphrase", **settings)


@pytest.mark.gate
def test_while_it_serves(cluster):
    """Whatever was answered before it began is in it, and nothing by half."""
    client, stop, made = cluster.client(), threading.Event(), []

    def load():
        while not stop.is_set():
            made.append(submit(cluster.client(), f"busy-{len(made)}"))

    assert client.post("/config/set", {"key": "kept", "value": "yes"}).status == 200
    thread = threading.Thread(target=load)
    thread.start()
    try:
        before = list(made)
        path = make(cluster)
    finally:
        stop.set()
        thread.join()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"ended-" not in path.read_bytes()
    done = backup(cluster, "verify", path)
    assert done.returncode == 0 and "the ledger is clean" in done.stdout, done
    assert client.get(f"{SESSIONS}/ended-1").status == 200
    state = cluster.folder / "restored"
    done = restore(cluster, path, state, ALIQUOT_MANAGER_DATABASE="")
    assert done.returncode == 0, done
    with Cluster(ALIQUOT_MANAGER_DATABASE="") as other:
        state.rename(other.folder / "manager")
        other.start_manager()
        found = {session["id"] for session in other.sessions()}
        assert set(before) <= found
        assert {f"ended-{i}" for i in range(5)} <= {s["name"] for s in other.sessions()}
        assert other.client().post("/config/get", {"key": "kept"}).json == {"result": "yes"}
        other.check_audits()
        other.stop()
    assert not (cluster.folder / "manager" / ".backup").exists()


@pytest.mark.gate
def test_agents_come_back(cluster):
    """The authority is in it: agents know the restored manager."""
    # what starts between the backup and the stop would wait for its administrator
    wait_for(lambda: not cluster.live_sessions(), 300, "the sessions of the test before")
    path = make(cluster)
    cluster.programs["manager"].stop()
    (cluster.folder / "manager").rename(cluster.folder / "lost")
    is_server = "ALIQUOT_MANAGER_DATABASE" in cluster.env
    refused = restore(cluster, path, cluster.folder / "lost")
    assert refused.returncode == 1, refused
    assert ("rows of a cluster already" if is_server else "not overwritten") in refused.stderr
    settings = {"ALIQUOT_MANAGER_DATABASE": ""} if is_server else {}
    done = restore(cluster, path, cluster.folder / "manager", **settings)
    assert done.returncode == 0, done
    cluster.start_manager(**settings)
    wait_for(lambda: cluster.client().post("/aliquot/v1/restore/finish", {}).status == 204, 60,
             "the agent, with what it has")
    wait_status(cluster.client(), submit(cluster.client(), "after-restore"), "TERMINATED")
    cluster.check_audits()


@pytest.mark.parametrize("damage, expected", [
    (lambda data: data[:-100], "damaged"),
    (lambda data: data[:65536], "damaged"),
    (lambda data: data[:40], "no backup of Aliquot"),
    (lambda data: b"", "no backup of Aliquot"),
    (lambda data: b"x" * 100000, "no backup of Aliquot"),
    (lambda data: data[:1000] + bytes([data[1000] ^ 1]) + data[1001:], "passphrase is wrong, or"),
    (lambda data: data[:100000] + bytes([data[100000] ^ 1]) + data[100001:], "damaged after"),
    (lambda data: data[:33] + b"\xff\xff\xff\xff" + data[37:], "header is damaged"),
    (lambda data: data[:65 + 65553], "cut after 64 KiB"),  # the header and one piece
])
def test_damaged(cluster, damage, expected):
    whole = make(cluster).read_bytes()
    path = cluster.folder / "damaged.backup"
    path.write_bytes(damage(whole))
    done = backup(cluster, "verify", path)
    assert done.returncode == 1 and expected in done.stderr, done
    done = restore(cluster, path, cluster.folder / "none", ALIQUOT_MANAGER_DATABASE="")
    assert done.returncode == 1 and expected in done.stderr, done
    assert set(os.listdir(cluster.folder / "none")) <= {".backup.lock"}


def test_only_what_belongs_to_it(cluster):
    """Of the state folder nothing else, least of all a plain copy that was left."""
    left = cluster.folder / "manager" / ".backup"
    left.mkdir(exist_ok=True)
    (left / "aliquot.db").write_bytes(os.urandom(1 << 20))
    (cluster.folder / "manager" / "notes").write_bytes(os.urandom(1 << 20))
    state = cluster.folder / "whole"
    path = make(cluster, "whole.backup")
    done = restore(cluster, path, state, ALIQUOT_MANAGER_DATABASE="")
    assert done.returncode == 0, done
    assert path.stat().st_size - 200000 < (state / "aliquot.db").stat().st_size / 2
    assert set(os.listdir(state)) - {".backup.lock", "manager.toml"} == {
        "aliquot.db", "aliquot.db.key", "ca"} and not left.exists()
    for name in ("bytes", "ca.crt"):
        assert (state / "ca" / name).read_bytes() == (
            cluster.folder / "manager" / "ca" / name).read_bytes()
    for path in state.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.gate
def test_passphrases(cluster):
    path = make(cluster)
    for name, text, mode, expected in (("other", "wrong horse\n", 0o600, "passphrase is wrong"),
                                       ("empty", "\n", 0o600, "nothing in it"),
                                       ("open", "correct horse\n", 0o644, "chmod 600"),
                                       ("long", "x" * 2000, 0o600, "more than 1024 bytes")):
        (cluster.folder / name).write_text(text)
        (cluster.folder / name).chmod(mode)
        done = backup(cluster, "verify", path, passphrase=name)
        assert done.returncode == 1 and expected in done.stderr, done
    done = backup(cluster, "create", path)
    assert done.returncode == 1 and "File exists" in done.stderr, done


def test_half_files_in_the_folder(cluster):
    """What a kill has left goes, what another cluster is making there does not."""
    folder = cluster.folder / "shared"
    folder.mkdir()
    left, made, foreign = (folder / name for name in (
        "aliquot-20260101-000000.backup.partial", "aliquot-20260102-000000.backup.partial",
        "notes.backup.partial"))
    for path in (left, made, foreign):
        path.write_bytes(b"half")
    with made.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = backup(cluster, "create", folder)
    assert done.returncode == 0, done
    assert not left.exists() and made.exists() and foreign.exists()
    assert len(list(folder.iterdir())) == 3


def test_folder_of_backups(cluster):
    """The newest are kept, others of the folder are left alone."""
    folder = cluster.folder / "nightly"
    folder.mkdir()
    old = [folder / f"aliquot-2026010{day}-000000.backup" for day in range(1, 6)]
    for path in [*old, folder / "aliquot-notes.txt"]:
        path.touch()
    done = backup(cluster, "create", folder, "--keep", "3")
    assert done.returncode == 0, done
    names = sorted(path.name for path in folder.iterdir())
    assert names[:2] == [path.name for path in old[3:]] and names[3] == "aliquot-notes.txt", names
    listed = backup(cluster, "ls", folder)
    assert listed.stdout.split()[::3] == names[:3], listed
    refused = backup(cluster, "create", folder, "--keep", "none")
    assert "not a number of 1 to" in refused.stderr, refused
