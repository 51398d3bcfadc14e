# SPDX-License-Identifier: Apache-2.0
"""What connections of strangers cost each daemon of a cluster: the memory of one, and how fast
another client is answered beside them. Part of bench/hostile."""

import contextlib
import multiprocessing
import pathlib
import socket
import ssl
import time

from benchlib import median, resident_kb

ATTACKERS = 4
ADDRESSES = [f"127.0.0.{n}" for n in range(2, 10)]  # of the strangers; others have 127.0.0.1
ASKED = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
SAID = {  # on each connection, which then reads nothing
    "silent": b"",
    "half_head": b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 4000,
    "unread": ASKED * 2000,
}


def program_pids(parent):
    """{"aliquot-web": pid, ...} of the children of a process."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if int(words[1]) == parent:
                name = pathlib.Path((folder / "cmdline").read_text().split("\0")[0]).name
                found[name] = int(folder.name)
    return found


def connect(stack, port, number, said):
    """A connection of a stranger that has said this, as far as it is taken."""
    sock = stack.enter_context(socket.socket())
    sock.bind((ADDRESSES[number % len(ADDRESSES)], 0))
    with contextlib.suppress(OSError):
        sock.connect(("127.0.0.1", port))
        sock.setblocking(False)
        sock.send(said)


def kb_of_one(pid, port, said, count):
    """Resident memory of the daemon per connection, once it has settled."""
    before = resident_kb(pid)
    with contextlib.ExitStack() as stack:
        for number in range(count):
            connect(stack, port, number, said)
        time.sleep(1)
        return max(0, resident_kb(pid) - before) / count


def ask(port, is_tls):
    """Milliseconds of one request, or of one handshake."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        if is_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.wrap_socket(sock).close()
        else:
            sock.sendall(ASKED)
            assert sock.recv(4096).startswith(b"HTTP/1.1 "), "no answer"
    return (time.monotonic() - began) * 1e3


def keep_connecting(be_nice, port):
    be_nice()
    while True:
        for said in SAID.values():
            with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
                for number in range(50):
                    connect(stack, port, number, said)
                time.sleep(0.2)


def latency(port, is_tls, seconds):
    took, end = [], time.monotonic() + seconds
    while not took or time.monotonic() < end:
        took.append(ask(port, is_tls))
    return median(took)


def beside(be_nice, port, is_tls, seconds):
    attackers = [multiprocessing.Process(target=keep_connecting, args=(be_nice, port), daemon=True)
                 for _ in range(ATTACKERS)]
    for process in attackers:
        process.start()
    try:
        return latency(port, is_tls, seconds)
    finally:
        for process in attackers:
            process.terminate()
            process.join()


def measure(cluster, be_nice, seconds, count):
    """Figures of each daemon of a cluster with its fronts."""
    pids, figures = program_pids(cluster.pids()["pid"]), {}
    for name, program, port, is_tls in (
            ("manager", "aliquot-manager", cluster.port, False),
            ("link", "aliquot-manager", cluster.link_port, True),
            *((name, f"aliquot-{name}", port, False) for name, port in cluster.fronts.items())):
        for what, said in SAID.items():
            figures[f"{name}_{what}_kb"] = kb_of_one(pids[program], port, said, count)
        quiet = latency(port, is_tls, seconds)
        loud = beside(be_nice, port, is_tls, seconds)
        figures.update({f"{name}_quiet_ms": quiet, f"{name}_beside_ms": loud,
                        f"{name}_factor": loud / quiet})
        print(name, {k: round(v, 2) for k, v in figures.items() if k.startswith(name)}, flush=True)
    return figures
