# SPDX-License-Identifier: Apache-2.0
"""A node and a proxy that were taken over: what they say of model services that are not theirs changes
nothing, and numbers that cannot be leave the manager and its figures as they are. The manager is real."""

import itertools
import pathlib
import sys
import uuid

import pytest

from cluster import wait_for
from played_serving import Node, Proxy

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "system"))

from test_model_service_routes import PATH, make_fixture, ready, shown, there_fixture  # noqa: E402, F401

there, make = there_fixture, make_fixture
MOST = 2**63 - 1
NUMBERS = (MOST, 10**15, 10**15 + 1, 0)
COUNTS = ("in_flight", "queued", "oldest_usec", "arrived", "refused", "waited", "queue_usec", "ok",
          "client_errors", "server_errors", "broken", "duration_usec", "first_byte_usec",
          "prompt_tokens", "completion_tokens", "cached_tokens")


@pytest.fixture(name="proxy")
def proxy_fixture(there):  # noqa: F811
    proxy = Proxy(there)
    yield proxy
    proxy.end()


@pytest.fixture(autouse=True)
def the_manager_is_well(there):  # noqa: F811
    yield
    assert there.user.get(PATH).status == 200
    text = (there.folder / "manager.log").read_text(errors="replace")
    assert "Sanitizer" not in text and "runtime error" not in text, text[-3000:]


def test_a_proxy_reports_numbers_that_cannot_be(there, proxy, make):  # noqa: F811
    service = make("figures", replicas=1)
    [session] = ready(there, "figures", 1)
    made = there.user.post(f"{PATH}/figures/tokens", {"label": "a", "budget": 1000})
    token = made.json["id"]
    wait_for(lambda: session in proxy.replicas("figures"))
    for number in NUMBERS:
        for name in COUNTS:
            proxy.use(service, **{name: number})
        for buckets in ([number], [number] * 17, [0] * 16 + [number], [1] * 1000):
            proxy.use(service, replicas=[{"session_id": session, "revision": 1, "requests": 1, "ok": 1,
                                          "duration_buckets": buckets, "first_byte_buckets": buckets}])
        for name in ("requests", "failures", "in_flight", "revision", "duration_usec", "cached_tokens"):
            proxy.use(service, replicas=[{"session_id": session, "revision": 1, name: number}] * 1024)
        for name in ("requests", "prompt_tokens", "completion_tokens", "refused"):
            proxy.use(service, tokens=[{"id": token, name: number}] * 100)
    for _ in range(10):  # sane ones, whose sum is not
        proxy.say({"type": "serving.use", "version": MOST, "services": [
            {"id": service["id"], **dict.fromkeys(COUNTS, 10**15)}] * 1000})
    proxy.use({"id": str(uuid.uuid4())}, arrived=1, tokens=[{"id": token, "requests": 1}])
    for version in (MOST, 0):
        proxy.say({"type": "serving.done", "version": version})
    proxy.use(service)
    figures = wait_for(lambda: (f := shown(there, "figures")["figures"])["ok"] >= 10**16 and not f["in_flight"] and f,
                           60)
    assert figures["in_flight"] == figures["queued"] == 0 <= figures["requests"]

    def listed():
        return there.user.get(f"{PATH}/figures/tokens").json["items"][0]
    assert 0 <= listed()["figures"]["requests"] <= MOST
    wait_for(lambda: 1000 <= listed()["used"] <= MOST, 60, "what the token has used to be written")
    assert there.user.get(f"{PATH}/figures/revisions").status == 200


@pytest.mark.parametrize("number", (-1, -MOST - 1, MOST + 1, 10**300, 1e300, 0.5, "1", None, [1], True))
def test_what_is_not_a_count_ends_the_connection(there, make, number):  # noqa: F811
    service = make("counts", replicas=0)
    liar = Proxy(there, "liar")
    try:
        wait_for(lambda: "counts" in liar.services)
        liar.use(service, arrived=1, in_flight=number)
        if number is not None:
            wait_for(lambda: not liar.thread.is_alive(), 30, "the end of the connection")
        assert shown(there, "counts")["figures"]["in_flight"] == 0
    finally:
        liar.end()


def test_a_proxy_reports_uses_of_apps_that_cannot_be(there, proxy, make):  # noqa: F811
    make("apps", replicas=1)
    [session] = ready(there, "apps", 1)
    ticket = str(uuid.uuid4())
    for number, name in itertools.product((1, *NUMBERS), ("connections", "requests", "bytes_in",
                                                          "bytes_out", "traffic")):
        for _ in range(3):
            proxy.say({"type": "app.use", "ticket_id": ticket, "session_id": session, "app": "web",
                       "access_key": "KEY", name: number, "is_work": True})
    for _ in range(10_000):
        proxy.say({"type": "app.use", "ticket_id": ticket, "session_id": session, "app": "web",
                   "access_key": "KEY", "requests": 10**15, "bytes_out": 10**15})
    assert there.user.get(f"{PATH}/apps").status == 200


def test_a_node_speaks_of_replicas_of_others(there, proxy, make):  # noqa: F811
    make("honest", replicas=1)
    [session] = ready(there, "honest", 1)
    wait_for(lambda: session in proxy.replicas("honest"))
    kernel = there.node.kernels[session]["kernel_id"]
    liar = Node(there, "liar", cpu="0")
    try:
        for state, attempt in itertools.product(("unhealthy", "ready", "starting", ""), (0, 1, MOST)):
            liar.say({"type": "kernel.health", "kernel_id": kernel, "attempt": attempt, "state": state,
                      "text": "x" * 100_000, "at_usec": MOST})
        for path, port in itertools.product(("/metrics", "/", "x"), (8000, 0, MOST)):
            liar.say({"type": "metrics.values", "kernel_id": kernel, "port": port, "path": path,
                      "names": ["a"] * 100, "values": [[i, 1e300] for i in (0, 99, 100, MOST)],
                      "text": "y"})
        for state in ("TERMINATED", "ERROR"):
            liar.say({"type": "kernel.status", "kernel_id": kernel, "session_id": session, "attempt": 1,
                      "state": state, "has_exit": True, "exit_code": 1})
        # what only proxies say
        liar.say({"type": "serving.use", "version": 1, "services": [
            {"id": shown(there, "honest")["id"], "arrived": 7, "queued": 7}]})
        liar.say({"type": "serving.done", "version": MOST})
        liar.say({"type": "app.connect", "request_id": str(uuid.uuid4()), "session_id": session,
                  "app": "web", "access_key": "KEY", "direct": True})
        before = len(proxy.versions)
        there.node.health(session, "unhealthy", "said by its own")
        wait_for(lambda: len(proxy.versions) > before)
        [replica] = shown(there, "honest")["replica_list"]
        assert "said by its own" in str(replica) and "xxx" not in str(replica)
        assert shown(there, "honest")["figures"]["requests"] == 0
        there.node.health(session)
        wait_for(lambda: shown(there, "honest")["replicas"]["ready"] == 1)
    finally:
        liar.stop()
