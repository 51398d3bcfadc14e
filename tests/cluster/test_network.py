# SPDX-License-Identifier: Apache-2.0
"""The network between kernels of one session on two nodes: what they reach, what nobody reaches,
and what can be read between the nodes."""

import contextlib
import hashlib
import re
import subprocess
import sys

import pytest

from cluster import wait_for
from hosts import Hosts
from runtimes import Session, exit_code, settings_of

PORT = 51871
WORDS = b"words of this session alone"
# Serves a file, but only where a kernel's number is not 0.
SERVE = f"""
ip -br -4 address show cluster0
echo {WORDS.decode()} > words
[ $RANK = 0 ] || exec /usr/bin/python3 -m http.server 8000 --bind 0.0.0.0
"""
FETCH = "curl -s --retry 30 --retry-connrefused --retry-delay 1 sub1:8000/words"
# Each connection that comes about is one too many: by any way, and by this network alone.
PROBE = """
import socket, sys
for address in sys.argv[1:]:
    for device in (b"", b"cluster0"):
        with socket.socket() as probe:
            probe.settimeout(1)
            try:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
                probe.connect((address, 8000))
                print("reached", address, device.decode())
            except OSError as error:
                print("tried", address, device.decode(), error)
"""


@pytest.fixture(scope="module", name="running")
def running_fixture():
    """Two nodes on each of which there is room for a kernel of 3 cores and one of 2."""
    with Hosts(count=2, **{**settings_of("crun"), "ALIQUOT_NETWORK_ENABLED": "true",
                           "ALIQUOT_RESOURCE_CPUS": "5"}) as hosts:
        hosts.begin()
        yield hosts
        hosts.check_all_gone()


def pair(hosts, command, cores=3):
    """A session with a kernel on each node; of 2 cores only beside one of 3."""
    return Session(hosts, command, clusterSize=2, clusterMode="multi-node",
                   config={"resources": {"cpu": str(cores), "mem": "256m"}})


def log_of(session, kernel):
    return session.client.get(f"/aliquot/v1/sessions/{session.id}/logs?kernel={kernel}").body.decode()


def address_of(session, kernel):
    found = wait_for(lambda: re.search(r"^cluster0\S* +\S+ +([0-9.]+)", log_of(session, kernel), re.M),
                     60, f"the address of {kernel}")
    return found.group(1)


def test_nothing_is_readable_on_the_wire(hosts):
    wire = hosts.capture(0, 1)
    session = pair(hosts, SERVE + f"for i in $(seq 20); do {FETCH}; done\n")
    assert exit_code(session.wait()) == 0, session.log
    seen = wire.stop()
    assert session.log.count(WORDS.decode()) == 20, session.log
    assert WORDS not in seen and b"GET /words" not in seen
    tunnel = [frame for frame in wire.frames if frame[36:38] == PORT.to_bytes(2, "big")]
    assert len(tunnel) > 20


@contextlib.contextmanager
def listening(host, *enter):
    """At port 8000 of all addresses of a node, or of a namespace of its."""
    with subprocess.Popen(
            host.words(*enter, sys.executable, "-u", "-m", "http.server", "8000", "--bind", "0.0.0.0"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        assert b"Serving" in server.stdout.readline()
        yield
        server.kill()


def test_sessions_are_apart(hosts):
    """A kernel reaches its own session's others; no other session's, no node's part of the network,
    and no node by it."""
    other = pair(hosts, SERVE.replace("[ $RANK = 0 ] ||", ""))
    targets = [address_of(other, "main1"), address_of(other, "sub1"), "169.254.1.1",
               *(host.address for host in hosts.hosts.values())]
    with contextlib.ExitStack() as stack:
        for number in (0, 1):
            host = hosts.hosts[number]
            [path] = (hosts.folder / f"run-node{number}").glob("net/*/cluster/ns")
            stack.enter_context(listening(host))
            stack.enter_context(listening(host, "nsenter", f"--net={path}"))
            shown = host.run("nsenter", f"--net={path}", "ip", "-o", "-4", "address")
            targets += [address for address in re.findall(r"inet ([0-9.]+)", shown)
                        if not address.startswith("127.")]
        session = pair(hosts, f"{SERVE}cat > probe.py <<'END'\n{PROBE}\nEND\n"
                       f"/usr/bin/python3 probe.py {' '.join(dict.fromkeys(targets))}\n"
                       f"{FETCH}\n"
                       "/usr/bin/python3 probe.py $(getent hosts sub1 | cut -d' ' -f1)\n", cores=2)
        session.wait(seconds=120)
    own = address_of(session, "sub1")
    reached = re.findall(r"^reached (\S+) (\S*)", session.log, re.M)
    nodes = [host.address for host in hosts.hosts.values()]  # by eth0 they are hosts as others
    assert [(address, way) for address, way in reached if way or address not in nodes] == [
        (own, ""), (own, "cluster0")], session.log
    assert len(re.findall("^tried|^reached", session.log, re.M)) == 2 * len(set(targets)) + 2


def test_a_blocked_port_is_named(hosts):
    """A start that cannot work says between which nodes, and which port to open."""
    hosts.block_udp(PORT)
    try:
        session = pair(hosts, "true")
        shown = session.wait("ERROR", "TERMINATED", "CANCELLED", seconds=120)
        assert shown["status"] != "TERMINATED", shown
        why = hosts.cli("why", session.id).stdout
        assert "node0" in why and "node1" in why and f"{PORT}" in why, why
    finally:
        hosts.block_udp(PORT, is_blocked=False)
    assert exit_code(pair(hosts, SERVE + FETCH).wait(seconds=120)) == 0


def test_a_bad_wire(hosts):
    """Much arrives whole over a way that is slow and loses frames."""
    hosts.set_delay(0, 1, 10)
    hosts.set_loss(0, 1, 1)
    try:
        much = SERVE.replace(f"echo {WORDS.decode()}", "head -c 2000000 /dev/zero")
        session = pair(hosts, f"{much}{FETCH} | sha256sum\n")
        assert exit_code(session.wait(seconds=120)) == 0, session.log
        assert hashlib.sha256(bytes(2000000)).hexdigest() in session.log, session.log
    finally:
        hosts.set_delay(0, 1, 0)
        hosts.heal(0, 1)
