# SPDX-License-Identifier: Apache-2.0
"""Ports of the loopback for programs that a test starts.

They lie below those that the kernel gives to connections, and each is held, by the name
of an abstract socket, as long as this process lives: of several tests that run at once
none gets a port that another one is about to listen at.
"""

import pathlib
import random
import socket

FIRST = 10000
LAST = 29999  # containers' services are published from 30000 on

held = []


def last():
    kernel = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    return min(LAST, int(kernel.split()[0]) - 1)


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def hold(port):
    """The mark of a port that is free and nobody else's; None = it is not."""
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(f"\0aliquot-port-{port}")
    except OSError:
        mark.close()
        return None
    if is_free(port):
        return mark
    mark.close()
    return None


def free_ports(count):
    """The first of so many ports side by side."""
    for _ in range(1000):
        port = random.randint(FIRST, last() - count + 1)
        marks = [hold(port + i) for i in range(count)]
        if all(marks):
            held.extend(marks)
            return port
        for mark in filter(None, marks):
            mark.close()
    raise AssertionError(f"no {count} ports side by side from {FIRST} to {last()} are free")


def free_port():
    return free_ports(1)
