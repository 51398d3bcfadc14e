# SPDX-License-Identifier: Apache-2.0
"""What the node remembers of connections is one table for all: a container fills its part."""

import subprocess
import sys

import pytest

from netlab import Lab

MANY = """
import socket, sys
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
open_ones = []
for _ in range(count):
    try: open_ones.append(socket.create_connection((address, port), 3))
    except OSError: pass
print(len(open_ones))
for one in open_ones: one.close()
"""

HOLDER = """
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(256)
print("ready", flush=True)
held = []
while True: held.append(s.accept())
"""


@pytest.fixture(name="lab")
def lab_fixture(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.close()


def hold(lab, space, address, port):
    """A listener that keeps what connects."""
    server = subprocess.Popen(space.words(sys.executable, "-c", HOLDER, address, port),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    lab.servers.append(server)
    assert server.stdout.readline() == "ready\n"


def opened(space, address, port, count):
    return int(space.run(sys.executable, "-c", MANY, address, port, count))


def test_limit_of_each_container(lab):
    driver = lab.driver(**{"max-connections": 8})
    hold(lab, lab.far, "198.51.100.7", 80)
    _, _, greedy = driver.kernel()
    _, _, modest = driver.kernel()
    assert opened(greedy, "198.51.100.7", 80, 20) == 8
    assert opened(greedy, "198.51.100.7", 80, 20) < 20
    assert opened(modest, "198.51.100.7", 80, 8) == 8
    assert opened(lab.node, "198.51.100.7", 80, 20) == 20  # the node itself has none


def test_limit_of_connections_from_outside(lab):
    """A container may have helpers outside, who connect to its port."""
    driver = lab.driver(**{"max-connections": 8})
    _, info, inside = driver.kernel(ports=[7000])
    hold(lab, inside, info["address"], 7000)
    assert opened(lab.far, "192.0.2.2", info["ports"]["7000"], 12) == 8


def test_no_limit_if_it_is_0(lab):
    driver = lab.driver(**{"max-connections": 0})
    hold(lab, lab.far, "198.51.100.7", 80)
    _, _, inside = driver.kernel()
    assert opened(inside, "198.51.100.7", 80, 20) == 20
