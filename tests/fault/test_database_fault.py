# SPDX-License-Identifier: Apache-2.0
"""'db migrate --to' and 'backup' die at each of their fault points; the same command, given again,
ends what was begun, and leaves nothing beside it."""

import fcntl
import os
import stat
import subprocess

import pytest

from cluster import Cluster, batch, wait_status
from test_fault import POINTS as OTHERS
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
MOVE = [point for point in POINTS if point.startswith(("store.move.", "store.transfer."))]
BACKUP = [point for point in POINTS if point.startswith("manager.backup.")]
RESTORE = [point for point in POINTS if point.startswith("manager.restore.")]


@pytest.fixture(scope="module")
def cluster():
    """Stopped, with a session that ran."""
    with Cluster() as made:
        made.start_manager()
        made.start_agent()
        reply = made.client().post("/session", batch("ended", "true"))
        wait_status(made.client(), reply.json["sessionId"], "TERMINATED")
        made.programs["agent"].stop()
        made.programs["manager"].stop()
        (made.folder / "passphrase").write_text("correct horse\n")
        (made.folder / "passphrase").chmod(0o600)
        yield made


def die_and_repeat(cluster, point, *words, **settings):
    """The command is killed at the point; then it does what it should."""
    mark = cluster.folder / f"died-{point}"
    killed = cluster.run("aliquot-manager", *words, ALIQUOT_FAULT=point,
                         ALIQUOT_FAULT_ONCE=str(mark), **settings)
    assert killed.returncode == -9 and mark.exists(), killed
    done = cluster.run("aliquot-manager", *words, **settings)
    assert done.returncode == 0, done


def serve(cluster, state):
    """A manager of that state has the session."""
    with Cluster(ALIQUOT_MANAGER_DATABASE="") as other:
        state.rename(other.folder / "manager")
        other.start_manager()
        assert other.client().get("/aliquot/v1/sessions/ended").json["status"] == "TERMINATED"
        other.check_audits()
        other.stop()


def test_all_points_are_tried_somewhere():
    assert MOVE and BACKUP and RESTORE and not {*MOVE, *BACKUP, *RESTORE} & {*OTHERS}


@pytest.mark.parametrize("point", MOVE)
def test_move(cluster, point):
    state = cluster.folder / f"target-{point}"
    state.mkdir(mode=0o700)
    die_and_repeat(cluster, point, "db", "migrate", "--to", state / "aliquot.db", "--state",
                   cluster.folder / "manager")
    key = "aliquot.db.key"
    (state / key).write_bytes((cluster.folder / "manager" / key).read_bytes())
    (state / key).chmod(0o600)
    serve(cluster, state)


def sealed(cluster):
    return ["--passphrase-file", cluster.folder / "passphrase"]


@pytest.mark.parametrize("point", BACKUP)
def test_backup(cluster, point):
    file, state = cluster.folder / f"{point}.backup", cluster.folder / "manager"
    die_and_repeat(cluster, point, "backup", "create", file, "--state", state, *sealed(cluster))
    done = cluster.run("aliquot-manager", "backup", "verify", file, "--state", state,
                       *sealed(cluster))
    assert done.returncode == 0, done
    assert not (state / ".backup").exists() and not list(cluster.folder.glob("*.partial"))


def test_plain_copy_is_private_and_goes(cluster):
    """What a killed backup has left goes at the manager's next start, one that is made does not."""
    state = cluster.folder / "manager"
    words = ["backup", "create", cluster.folder / "never.backup", "--state", state,
             *sealed(cluster)]
    killed = cluster.run("aliquot-manager", *words, ALIQUOT_FAULT="manager.backup.copied")
    copy = state / ".backup" / "aliquot.db"
    assert killed.returncode == -9 and copy.stat().st_size, killed
    assert [stat.S_IMODE(path.stat().st_mode) for path in (copy.parent, copy)] == [0o700, 0o600]
    with (state / ".backup.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster.start_manager()
        cluster.programs["manager"].stop()
        assert copy.exists()
    cluster.start_manager()
    assert not copy.parent.exists()
    cluster.programs["manager"].stop()


def test_plain_copy_among_temporary_files(cluster):
    """Of a backup that is verified where no manager is: the same, also for the next one there."""
    folder, file = cluster.folder / "tmp", cluster.folder / "away.backup"
    folder.mkdir()
    done = cluster.run("aliquot-manager", "backup", "create", file, "--state",
                       cluster.folder / "manager", *sealed(cluster))
    assert done.returncode == 0, done
    words = ["backup", "verify", file, "--state", cluster.folder / "nowhere", *sealed(cluster)]
    foreign, made = folder / "aliquot-backup-notes", folder / "aliquot-backup-AbCdEf"
    foreign.mkdir()
    made.mkdir()
    lock = os.open(made, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for clean in (lambda: cluster.run("aliquot-manager", *words, TMPDIR=str(folder)),
                      lambda: cluster.start_manager(TMPDIR=str(folder))):
            killed = cluster.run("aliquot-manager", *words, TMPDIR=str(folder),
                                 ALIQUOT_FAULT="manager.restore.unpacked")
            left, = {*folder.iterdir()} - {foreign, made}
            assert killed.returncode == -9 and (left / "aliquot.db").stat().st_size, killed
            assert stat.S_IMODE(left.stat().st_mode) == 0o700
            clean()
            assert {*folder.iterdir()} == {foreign, made}
    finally:
        os.close(lock)
    cluster.programs["manager"].stop()


NO_FOLDER_SYNC = r"""
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fsync(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}
"""


def test_names_are_on_disk(cluster):
    """Neither is an older backup removed nor a cluster restored before its name is there."""
    folder, state = cluster.folder / "names", cluster.folder / "names-state"
    folder.mkdir()
    source, library = folder / "no_folder_sync.c", folder / "no_folder_sync.so"
    source.write_text(NO_FOLDER_SYNC)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    old = folder / "aliquot-20260101-000000.backup"
    old.touch()
    broken = {"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    create = ["backup", "create", folder, "--keep", "1", "--state", cluster.folder / "manager",
              *sealed(cluster)]
    done = cluster.run("aliquot-manager", *create, **broken)
    assert done.returncode == 1 and "sync the folder" in done.stderr and old.exists(), done
    done = cluster.run("aliquot-manager", *create)
    assert done.returncode == 0 and not old.exists(), done
    made = sorted(folder.glob("aliquot-*.backup"))[-1]
    restore = ["backup", "restore", made, "--state", state, *sealed(cluster)]
    done = cluster.run("aliquot-manager", *restore, ALIQUOT_MANAGER_DATABASE="", **broken)
    assert done.returncode == 1 and "sync the folder" in done.stderr, done
    done = cluster.run("aliquot-manager", *restore, ALIQUOT_MANAGER_DATABASE="")
    assert done.returncode == 0, done
    serve(cluster, state)


@pytest.mark.parametrize("point", RESTORE)
def test_restore(cluster, point):
    file, state = cluster.folder / f"{point}.backup", cluster.folder / f"restored-{point}"
    done = cluster.run("aliquot-manager", "backup", "create", file, "--state",
                       cluster.folder / "manager", *sealed(cluster))
    assert done.returncode == 0, done
    die_and_repeat(cluster, point, "backup", "restore", file, "--state", state, *sealed(cluster),
                   ALIQUOT_MANAGER_DATABASE="")
    assert not (state / ".backup").exists()
    serve(cluster, state)
