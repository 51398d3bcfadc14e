# SPDX-License-Identifier: Apache-2.0
"""The hosts of tests/lib/hosts.py: agents on them run sessions, and their wire does what it is told."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

import containers
from hosts import MANAGER, Hosts
from runtimes import Session, exit_code, settings_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="networks of their own need root")

PORT = 7000


def socket_on(hosts, number, address="0.0.0.0", port=0, kind=socket.SOCK_DGRAM):
    with hosts.hosts[number].entered():
        made = socket.socket(socket.AF_INET, kind)
    made.settimeout(5)
    made.bind((address, port))
    return made


def count_arrivals(hosts, source, target, count=1, port=PORT, seconds=1, text=b"datagram"):
    """How many of so many datagrams are there within a time."""
    with socket_on(hosts, source) as sender, socket_on(hosts, target, port=port) as receiver:
        receiver.settimeout(seconds)
        arrived = 0
        for _ in range(count):
            sender.sendto(text, (hosts.hosts[target].address, port))
        with contextlib.suppress(TimeoutError):
            while arrived < count:
                arrived += receiver.recv(2000) == text
        return arrived


@pytest.fixture(scope="module", name="wire")
def wire_fixture():
    with Hosts(count=3) as hosts:
        yield hosts


def test_a_pair_is_cut_and_healed(wire):
    wire.cut(0, 1)
    assert count_arrivals(wire, 0, 1) == count_arrivals(wire, 1, 0) == 0
    assert count_arrivals(wire, 0, 2) == count_arrivals(wire, 0, MANAGER) == 1
    wire.heal(0, 1)
    assert count_arrivals(wire, 0, 1) == count_arrivals(wire, 1, 0) == 1


def test_frames_are_lost(wire):
    assert count_arrivals(wire, 0, 1, count=200) == 200
    wire.set_loss(0, 1, 50)
    arrived = sum(count_arrivals(wire, 0, 1, count=100, seconds=0.3) for _ in range(4))
    wire.heal(0, 1)
    assert 120 < arrived < 280


def test_a_port_of_udp_is_blocked(wire):
    wire.block_udp(PORT)
    assert count_arrivals(wire, 0, 1) == 0
    assert count_arrivals(wire, 0, 1, port=PORT + 1) == 1
    wire.block_udp(PORT, is_blocked=False)
    assert count_arrivals(wire, 0, 1) == 1


def round_trip(hosts, source, target):
    """Milliseconds."""
    with socket_on(hosts, source) as near, socket_on(hosts, target, port=PORT) as far:
        started = time.monotonic()
        near.sendto(b"there", (hosts.hosts[target].address, PORT))
        far.sendto(b"back", far.recvfrom(100)[1])
        assert near.recv(100) == b"back"
        return (time.monotonic() - started) * 1000


def send_much(hosts, source, target, size=1 << 20):
    """By TCP, whose frames are larger than the wire's inside of the kernel; the bytes that came."""
    with socket_on(hosts, target, port=PORT, kind=socket.SOCK_STREAM) as listener:
        listener.listen()
        with socket_on(hosts, source, kind=socket.SOCK_STREAM) as sender:
            sender.connect((hosts.hosts[target].address, PORT))
            with listener.accept()[0] as receiver:
                receiver.settimeout(10)
                sender.setblocking(False)
                left, come = size, 0
                while come < size:
                    with contextlib.suppress(BlockingIOError):
                        left -= sender.send(b"x" * min(left, 65536)) if left else 0
                    come += len(receiver.recv(65536))
                return come


def test_a_pair_is_slow(wire):
    wire.set_delay(0, 1, 60)
    round_trip(wire, 0, 1)
    assert 120 <= round_trip(wire, 0, 1) < 1000
    assert 120 <= round_trip(wire, 1, 0) < 1000
    assert round_trip(wire, 0, 2) < 100
    wire.set_delay(0, 1, 0)
    assert round_trip(wire, 0, 1) < 100
    assert send_much(wire, 0, 1) == send_much(wire, 1, 0) == 1 << 20


def test_frames_are_recorded(wire):
    first, second = wire.capture(0, 1), wire.capture(0, 2)
    assert count_arrivals(wire, 0, 1, text=b"known words") == 1
    assert b"known words" in first.stop()
    assert b"known words" not in second.stop()


def agents_of(shown):
    return {kernel["agent"] for kernel in shown["kernels"]}


@pytest.mark.gate
@pytest.mark.parametrize("runtime", ("process", "crun"))
def test_sessions_run_on_all_hosts(runtime):
    """Each node runs its kernels: of processes on its network, of containers with their own."""
    settings = {**settings_of(runtime), "ALIQUOT_RESOURCE_CPUS": "1",
                "ALIQUOT_NETWORK_ENABLED": str(runtime != "process").lower()}
    with Hosts(count=2, **settings) as hosts:
        hosts.begin()
        session = Session(hosts, "ip -br -4 addr show eth0; [ $RANK = 0 ] || exec sleep 60",
                          clusterSize=2, clusterMode="multi-node")
        shown = session.wait()
        assert exit_code(shown) == 0, session.log
        assert agents_of(shown) == {"node0", "node1"}
        pattern = r"198\.51\.100\.1[01]/24" if runtime == "process" else r"10\.213\.\S+"
        assert re.search(rf"^eth0\S+ +UP +{pattern}", session.log), session.log
        hosts.check_all_gone()


KILLED = """
import sys
from hosts import Hosts
from runtimes import Session, settings_of
with Hosts(count=1, **settings_of("crun")) as hosts:
    hosts.begin()
    Session(hosts, "sleep 600").wait("RUNNING")
    hosts.set_delay(0, "m", 1)
    print(hosts.folder, flush=True)
    sys.stdin.read()
"""


def test_nothing_outlives_a_test_that_is_killed():
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    process = subprocess.Popen([sys.executable, "-c", KILLED], env=env, text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    folder = process.stdout.readline().strip()
    assert folder
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 30
    while os.path.exists(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not os.path.exists(folder)
    assert containers.cgroups_of(folder) == [] and containers.mounts_of(folder) == []
