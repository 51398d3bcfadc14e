# SPDX-License-Identifier: Apache-2.0
"""Errors that are known before a request's body has come leave the connection in order: it serves
the next request, or it ends after an answer that can be read.
"""

import select

import pytest

from client import ADMIN
from wire import Wire

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SIZES = (0, 1, 65536, 1 << 20, 10 << 20)
KEPT = 65536  # a body up to this is read before the answer
LARGEST = max(SIZES)
LARGER = ("/aliquot/v1/import/backendai",)  # take more


def concrete(route):
    return route["path"].replace("{", "").replace("}", "")


def wrong_methods(routes):
    """A method that each path does not have, and the path."""
    has = {}
    for route in routes:
        has.setdefault(concrete(route), set()).add(route["method"])
    for path, methods in has.items():
        yield next(method for method in METHODS if method not in methods), path


def early_errors(routes, client):
    """(name, method, path, headers, statuses) of what can be told from the head alone."""
    for route in routes:
        method, path = route["method"], concrete(route)
        yield "unknown path", method, path.rstrip("/") + "/no/such/path", {}, {404}
        if route["access"] != "public":
            headers = client.headers(method, path, "application/json")
            headers["Authorization"] = headers["Authorization"][:-4] + "beef"
            yield "bad signature", method, path, headers, {401}
    for method, path in wrong_methods(routes):
        yield "wrong method", method, path, {}, {404, 405}


@pytest.mark.parametrize("size", [*SIZES[:3], *(pytest.param(size, marks=pytest.mark.exhaustive)
                                                for size in SIZES[3:])])
@pytest.mark.parametrize("chunked", (False, True), ids=("length", "chunked"))
def test_every_route_with_every_early_error(cluster, routes, size, chunked):
    seen, body = set(), b"GET /evil HTTP/1.1\r\nHost: localhost\r\n\r\n"
    body = (body * (size // len(body) + 1))[:size]
    for name, method, path, headers, statuses in early_errors(routes, cluster.client(ADMIN)):
        with Wire(cluster.address) as wire:
            status, answer, text = wire.ask(method, path, headers, body, chunked)
            assert status in statuses, (name, method, path, status, text)
            kept = wire.check_next(answer)
            assert kept == (size <= KEPT), (name, method, path, answer)
            seen.add(name)
    assert seen == {"unknown path", "bad signature", "wrong method"}


@pytest.mark.parametrize("chunked", (False, True), ids=("length", "chunked"))
def test_every_route_with_a_body_that_is_too_large(cluster, routes, chunked):
    client = cluster.client(ADMIN)
    for route in routes:
        method, path = route["method"], concrete(route)
        headers = client.headers(method, path, "application/json")
        with Wire(cluster.address) as wire:
            status, answer, text = wire.ask(method, path, {**headers, "Host": client.host},
                                            bytes(LARGEST), chunked)
            takes_it = route["streams_body"] or path in LARGER  # or as much as the disk holds
            wanted = (400, 404) if takes_it else (413,)
            assert status in wanted, (method, path, status, text)
            assert wire.check_next(answer) == (path in LARGER), (method, path)


def test_nothing_is_said_to_a_client_that_may_yet_keep_its_body(cluster, nobody):
    """It would send its next request where the body is expected."""
    with Wire(cluster.address) as wire:
        wire.send(b"POST /no/such/path HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n")
        assert nobody.get("/").status == 200  # the manager has seen the head by now
        assert not select.select([wire.socket], [], [], 0)[0]
        wire.send(b"0123456789" * 2)
        status, headers, _ = wire.answer()
        assert status == 404
        assert wire.check_next(headers)


def test_a_client_that_asks_first_is_told_at_once(cluster):
    with Wire(cluster.address) as wire:
        wire.send(b"POST /no/such/path HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n"
                  b"Expect: 100-continue\r\n\r\n")
        status, headers, _ = wire.answer()
        assert (status, headers["connection"]) == (404, "close")
        assert wire.is_ended()
