# SPDX-License-Identifier: Apache-2.0
"""Programs in containers make no namespaces, unless the node's administrator lets them, and reach
no hypervisor; threads, processes and other sockets are as ever."""

import pytest

from cluster import Cluster
from runtimes import run, settings_of

CALLS = """/usr/bin/python3 -c '
import ctypes, os, socket, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)
def name(result):
    return "done" if result >= 0 else os.strerror(ctypes.get_errno())
for what, flags in (("user", 0x10000000), ("mount", 0x20000), ("time", 0x80), ("files", 0x400)):
    print("unshare", what, name(libc.unshare(flags)))
print("clone user", name(libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)))
print("clone3", name(libc.syscall(435, 0, 0)))
print("setns", name(libc.setns(os.open("/proc/self/ns/uts", os.O_RDONLY), 0)))
print("mount", name(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)))
for what, family, protocol in (("vsock", 40, 0), ("vsock, 64 bits", 1 << 32 | 40, 0), ("audit", 16, 9)):
    print(what, name(libc.syscall(41, ctypes.c_long(family), 1 + 2 * (protocol == 9), protocol)))
socket.socket(socket.AF_INET); socket.socket(socket.AF_UNIX); socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
thread = threading.Thread(target=print, args=("thread",)); thread.start(); thread.join()
print(subprocess.run(["echo", "process"], capture_output=True, text=True).stdout, end="")
'"""
REFUSED = """unshare user Function not implemented
unshare mount Function not implemented
unshare time Function not implemented
unshare files done
clone user Function not implemented
clone3 Function not implemented
setns Operation not permitted
mount Operation not permitted
vsock Function not implemented
vsock, 64 bits Function not implemented
audit Invalid argument
thread
process
"""


@pytest.fixture(params=("crun", "runc"), scope="module")
def runtime(request):
    return request.param


def said(runtime, command, **settings):
    with Cluster(**settings_of(runtime), **settings) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        shown, log = run(cluster, command)
        cluster.check_nothing_left()
        cluster.stop()
    return log


def test_namespaces_and_vsock_are_refused(runtime):
    assert said(runtime, CALLS) == REFUSED


@pytest.mark.parametrize("profile", (None, '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}'))
def test_they_are_refused_whatever_the_nodes_profile_is(runtime, tmp_path, profile):
    file = tmp_path / "profile.json"
    if profile:
        file.write_text(profile)
    log = said(runtime, CALLS, ALIQUOT_RUNTIME_SECCOMP=str(file))
    assert [line for line in log.splitlines() if "audit" not in line] == [
        line for line in REFUSED.splitlines() if "audit" not in line]


def test_an_administrator_may_allow_namespaces(runtime):
    log = said(runtime, "unshare --user --map-root-user id -u; " + CALLS,
               ALIQUOT_CONTAINER_NAMESPACES="true")
    assert log.startswith("0\nunshare user done\n") and "vsock Function not" in log, log
