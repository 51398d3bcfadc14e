# SPDX-License-Identifier: Apache-2.0
"""Bare roots: what is inside, and that nothing is left of a run, whatever ends it."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

HOLD = """unshare --user --map-root-user --net sleep 1000 &
mount -t tmpfs none /mnt
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*/; do mkdir "$hierarchy/inner"; done 2>/dev/null
setsid sleep 1000 &
echo ready
wait
"""


@pytest.fixture(scope="module")
def root(new_machine):
    return new_machine("12").root


def inside(root, *command, **kwargs):
    done = root.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    return done.returncode, done.stdout.strip()


def namespaces(kind):
    """Namespaces of a kind that some process is in."""
    found = set()
    for path in pathlib.Path("/proc").glob(f"[0-9]*/ns/{kind}"):
        try:
            found.add(os.readlink(path))
        except OSError:
            continue
    return found


def cgroups_of(pid):
    return list(pathlib.Path("/sys/fs/cgroup").glob(f"**/aliquot-bare-{pid}"))


def wait_until(is_true):
    for _ in range(200):
        if is_true():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_nothing_is_left_of_a_run_that_is_killed(root, number):
    run = root.popen(["bash", "-c", HOLD], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert run.stdout.readline() == b"ready\n"
    children = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True)
    one = max(map(int, children.stdout.split()))
    spaces = {kind: os.readlink(f"/proc/{one}/ns/{kind}") for kind in ("pid", "mnt", "net")}
    assert cgroups_of(run.pid)
    run.send_signal(number)
    run.wait(timeout=30)
    run.stdout.close()
    for kind, name in spaces.items():
        assert wait_until(lambda: name not in namespaces(kind)), kind
    assert wait_until(lambda: not cgroups_of(run.pid))
    assert str(root.folder) not in pathlib.Path("/proc/self/mountinfo").read_text()


def test_exit_status_and_signals(root):
    assert inside(root, "sh", "-c", "exit 7")[0] == 7
    assert inside(root, "sh", "-c", "kill -9 $$")[0] == 137
    assert inside(root, "no-such-program") == (
        127, "bare_root: no-such-program: No such file or directory")


def test_a_network_of_its_own(root):
    assert inside(root, "sh", "-c", "ls /sys/class/net") == (0, "lo")
    runs = [root.popen(["apt-get", "-q", "update"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, offline=offline)
            for offline in (False, False)]
    assert [run.wait(timeout=60) for run in runs].count(0) >= 1  # apt has one lock


def test_offline_has_no_packages(root):
    status, said = inside(root, "apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "update",
                          offline=True)
    assert status != 0 and "resolv" in said


def test_users(root):
    assert inside(root, "sh", "-c", "id -un; echo $HOME; pwd", user="nobody") == (
        0, "nobody\n/nonexistent\n/")
    assert inside(root, "true", user="nobody.at.all")[0] != 0


def test_process_one(root):
    assert inside(root, "sh", "-c", "echo $$", init=True) == (0, "1")
