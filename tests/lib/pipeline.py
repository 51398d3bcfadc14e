# SPDX-License-Identifier: Apache-2.0
"""Pipelines: requests of one connection that are sent at once, and what becomes of their answers.

Each request carries a mark of its own where it can, so that an answer which repeats it tells which
request it is for; a request to a place that does not exist always tells.
"""

import concurrent.futures
import contextlib
import itertools
import os
import random
import re
import socket
import struct
import sys

MARK = "mark-%d-"
SEED = 20261128
WORKERS = 6
PIECE = 12  # requests between two that certainly tell their mark
HEADLESS = (204, 304)
is_all = os.environ.get("ALIQUOT_PAIRS") == "all"
numbers = itertools.count(1)


class Step:
    """A request; 'render(mark)' gives its bytes. Of a 'telling' one the answer repeats the mark."""

    def __init__(self, name, render, is_telling=False):
        self.name, self.render, self.is_telling = name, render, is_telling
        self.is_head = name.startswith("HEAD ")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


def plain(method, path, body=None, **headers):
    """The bytes of a request; '_' in a header's name is '-'."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost",
             *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


def step(method, path, body=None, is_telling=False, **headers):
    """One that is not signed; "{mark}" in its path and headers is its mark."""
    def render(mark):
        made = {name: str(value).replace("{mark}", mark) for name, value in headers.items()}
        return plain(method, path.replace("{mark}", mark), body, **made)
    return Step(f"{method} {path[:200]} {headers}", render, is_telling)


def mixed_up(values):
    """The same each time, in no order."""
    values = list(values)
    random.Random(SEED).shuffle(values)
    return values


def neighbours(values):
    """A sequence in which each follows each, and itself, exactly once."""
    order = mixed_up(values)
    row = [one for i, first in enumerate(order)
           for one in (first, *(x for later in order[i + 1:] for x in (first, later)))]
    return [*row, row[0]]


def pieces(row, size=PIECE):
    """The sequence in parts that overlap by one."""
    return [row[i:i + size] for i in range(0, len(row) - 1, size - 1)]


# ---- answers ----

def read_line(file):
    line = file.readline()
    if not line.endswith(b"\n"):
        raise EOFError(f"the connection ended in the middle of an answer: {line!r}")
    return line


def read_chunks(file):
    body = b""
    while size := int(read_line(file).split(b";")[0], 16):
        body += file.read(size)
        read_line(file)
    read_line(file)
    return body


def read_body(file, headers):
    if headers.get("transfer-encoding") == "chunked":
        return read_chunks(file)
    size = int(headers.get("content-length", 0))
    body = file.read(size)
    if len(body) < size:
        raise EOFError(f"the connection ended in the middle of a body: {body!r}")
    return body


def read_answer(file, is_head=False):
    """EOFError at an end."""
    line, headers = read_line(file), {}
    assert line.startswith(b"HTTP/1.1 "), f"not an answer: {line!r}"
    status = int(line.split()[1])
    while (line := read_line(file)).strip():
        name, _, value = line.decode(errors="replace").partition(":")
        headers[name.lower()] = value.strip()
    return Answer(status, headers,
                  b"" if is_head or status in HEADLESS else read_body(file, headers))


def check(step, mark, answer):
    """That it can be this request's answer."""
    text = answer.body + repr(answer.headers).encode()
    assert answer.status != 500, (step.name, answer)
    told = set(re.findall(rb"mark-\d+-", text))
    assert told <= {mark.encode()}, f"{step.name}, {mark}: the answer is another one's: {answer}"
    if step.is_telling:
        assert told, f"{step.name}, {mark}: the answer is another one's: {answer}"


class Pipeline:
    def __init__(self, address, steps):
        self.address, self.steps = address, steps
        self.marks = [MARK % next(numbers) for _ in steps]
        self.parts = [step.render(mark) for step, mark in zip(steps, self.marks)]
        self.has_ended = False  # with an answer that was the connection's last

    def connect(self):
        sock = socket.create_connection(self.address, timeout=60)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def names(self):
        return [step.name for step in self.steps]

    def read(self, file):
        """All answers, checked; how many there were: an answer may be the connection's last."""
        for i, (step, mark) in enumerate(zip(self.steps, self.marks)):
            try:
                answer = read_answer(file, step.is_head)
            except (EOFError, OSError) as error:
                raise AssertionError(f"{error}: answer {i} of {self.names()}") from error
            check(step, mark, answer)
            self.has_ended = answer.headers.get("connection") == "close"
            if self.has_ended:
                return i + 1
        return len(self.steps)


def read_all(pipeline):
    """The steps after an answer that ended the connection go into another one."""
    while True:
        with pipeline.connect() as sock, sock.makefile("rb") as file:
            sock.sendall(b"".join(pipeline.parts))
            count = pipeline.read(file)
        if count == len(pipeline.steps):
            return
        pipeline = Pipeline(pipeline.address, pipeline.steps[count:])


# ---- ways to leave ----

def cut_at(pipeline, sock, at):
    sock.sendall(b"".join(pipeline.parts)[:at])


def leave_at_once(pipeline, sock):
    sock.sendall(b"".join(pipeline.parts))


def leave_with_a_reset(pipeline, sock):
    sock.sendall(b"".join(pipeline.parts))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def leave_in_the_second_head(pipeline, sock):
    first, second = pipeline.parts[:2]
    cut_at(pipeline, sock, len(first) + second.index(b"\r\n\r\n") // 2)


def leave_in_the_second_body(pipeline, sock):
    """Or just before it would begin, where it has none."""
    first, second = pipeline.parts[:2]
    head = second.index(b"\r\n\r\n") + 4
    cut_at(pipeline, sock, len(first) + max(head - 1, (head + len(second)) // 2))


def leave_after_a_byte(pipeline, sock):
    sock.sendall(b"".join(pipeline.parts))
    sock.recv(1)


def say_the_end(pipeline, sock):
    """What comes until the server's end are the first answers, in order; the last may be cut."""
    sock.sendall(b"".join(pipeline.parts))
    sock.shutdown(socket.SHUT_WR)
    with sock.makefile("rb") as file:
        for step, mark in zip(pipeline.steps, pipeline.marks):
            check(step, mark, read_answer(file, step.is_head))


WAYS = (leave_at_once, leave_with_a_reset, leave_in_the_second_head, leave_in_the_second_body,
        leave_after_a_byte, say_the_end)


def leave(way):
    def run(pipeline):
        with pipeline.connect() as sock, contextlib.suppress(ConnectionError, EOFError):
            way(pipeline, sock)
    return run


# ---- many of them ----

def run(address, lists, behave, workers=WORKERS):
    """A pipeline of each list of steps; the number of pairs."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(lambda steps: behave(Pipeline(address, steps)), lists):
            pass
    return sum(len(steps) - 1 for steps in lists)


def run_pairs(address, steps, telling, share, workers=WORKERS):
    """Each pair, or the share of them that the test takes by default, read whole by so many clients
    at one time, and many left in each way."""
    lists = mixed_up(pieces(neighbours(steps)))
    read = lists if is_all else lists[:share]
    count = run(address, [[telling, *piece, telling] for piece in read], read_all,
                workers)
    pairs = mixed_up(itertools.product(steps, steps))
    each = min(len(pairs) // len(WAYS), 10000 if is_all else 2 * share)
    for i, way in enumerate(WAYS):
        count += run(address, [[*pair, telling] for pair in pairs[i * each:(i + 1) * each]],
                     leave(way))
    if is_all:
        print(f"{len(steps)} requests, {count} pairs", file=sys.stderr)
