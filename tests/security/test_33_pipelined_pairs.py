# SPDX-License-Identifier: Apache-2.0
"""Every two requests in a row on one connection, sent at once: answers come in order, one for each,
however the client leaves, and the server lives.

By default some pairs are sent, the same ones each time. With ALIQUOT_PAIRS=all in the environment
it is every pair of which the answers are read, and up to ten thousand pairs for each way to leave:
some 330,000 pairs in five minutes of two processors.
"""

import contextlib
import pathlib
import sys
import threading

import pytest

import pipeline
from cluster import WAITS, batch, wait_for
from cut_relay import CutRelay
from manager_steps import V1, Objects, Signed, steps_of_all_routes
from pipeline import Pipeline, Step, leave, leave_at_once, step
from server_steps import (proxy_steps, proxy_telling, scheduler_steps, storage_steps, web_steps,
                          web_telling)
from storage import Stored
from web import Webbed

sys.path.append(str(pathlib.Path(__file__).parents[1] / "system"))
from test_kube_scheduler import Scheduler, card, node, pod  # noqa: E402
from test_proxy import Proxied  # noqa: E402

SHARE = 50  # pipelines of the manager; the others have less routes
CHUNK = 8  # requests behind a stream
CUTS = 6 if not pipeline.is_all else 100
FOLLOW = "subscription($id: ID!) { schedulingEventsBySession(sessionId: $id) { sessionId } }"
USER_EMAIL = "user@lablup.com"
TELLING = step("GET", "/nothing/{mark}", is_telling=True)


class Linked(Stored, Webbed):
    """A manager with a storage host and a web server."""


@contextlib.contextmanager
def line(cluster):
    """What is started inside reaches the manager through a line that can be cut."""
    own, relay = cluster.link, CutRelay(int(cluster.link.rpartition(":")[2]))
    cluster.link = f"127.0.0.1:{relay.port}"
    try:
        yield relay
    finally:
        cluster.link = own


@pytest.fixture(name="there", scope="module")
def there_fixture():
    with Linked(ALIQUOT_RESOURCE_CPUS="8") as cluster, contextlib.ExitStack() as stack:
        cluster.start_manager()
        with line(cluster) as cluster.storage_line:
            cluster.start_storage(ALIQUOT_STORAGE_MANAGER=cluster.link)
        with line(cluster) as cluster.web_line:
            cluster.start_web(ALIQUOT_WEB_MANAGER=cluster.link)
        for relay in (cluster.storage_line, cluster.web_line):
            stack.callback(relay.close)
        cluster.start_agent()
        cluster.objects = Objects(cluster)
        yield cluster
        cluster.client().delete("/session/box?forced=true")
        cluster.stop()


@contextlib.contextmanager
def living(cluster, name, serves):
    """It must be the same process in the end, serve, and have no sanitizer's report."""
    program = cluster.programs[name]
    pid = program.pid
    try:
        yield
    finally:
        log = cluster.log_of(name)
        assert "Sanitizer" not in log and "runtime error" not in log, log[-9000:]
    assert program.process.poll() is None and program.pid == pid, f"{name} has died"
    wait_for(serves, 30, f"{name} to serve")


def manager_lives(cluster):
    return living(cluster, "manager", lambda: cluster.client().get("/auth?echo=x").status == 200)


def web_lives(cluster):
    return living(cluster, "web", lambda: cluster.browser().ask("GET", "/health").status == 200)


# ---- pairs ----

def test_routes_of_the_manager(there):
    steps = steps_of_all_routes(there.objects)
    there.objects.wait(there.objects.admin, "waiting")
    with manager_lives(there):
        pipeline.run_pairs(there.address, steps, TELLING, SHARE)


def test_routes_of_the_web_server(there):
    with web_lives(there):
        pipeline.run_pairs(("127.0.0.1", there.web_port), web_steps(there), web_telling(), SHARE)


def test_routes_of_the_storage_host(there):
    """One client at a time: another one's piece of an upload would end the one under way."""
    with living(there, "storage", there.is_stored):
        pipeline.run_pairs(("127.0.0.1", there.port), storage_steps(there), TELLING, SHARE, 1)


@pytest.fixture(name="proxied", scope="module")
def proxied_fixture():
    with Proxied() as cluster:
        cluster.start_manager()
        with line(cluster) as cluster.proxy_line:
            cluster.start_proxy()
        yield cluster
        cluster.stop()
        cluster.proxy_line.close()


def test_routes_of_the_proxy(proxied):
    with living(proxied, "proxy", proxied.is_proxied):
        pipeline.run_pairs(("127.0.0.1", proxied.port), proxy_steps(), proxy_telling(), SHARE)


def test_routes_of_the_scheduler():
    """That of Kubernetes' nodes, which asks an API server before it answers."""
    with Scheduler() as cluster:
        names = [f"node{i}" for i in range(3)]
        for name in names:
            cluster.api.objects.put("nodes", node(name, card(name, 0)))
        pods = [pod(f"pod{i}", 1) for i in range(5)]
        for each in pods:
            cluster.api.objects.put("pods", each)
        cluster.start()
        pipeline.run_pairs(("127.0.0.1", cluster.port), scheduler_steps(pods, names), TELLING, SHARE)
        assert cluster.process.poll() is None and cluster.is_complete()
        cluster.stop()


# ---- streams, first and last ----

def events(client, session):
    return [Step("events", lambda _: client.request("GET", f"/events/session?sessionId={session}"))]


def subscription(client, session):
    asked = {"query": FOLLOW, "variables": {"id": session}}
    return [Step("subscription", lambda _: client.request("POST", "/admin/gql", asked,
                                                          {"Accept": "text/event-stream"}))]


def log(client, session):
    return [Step("log", lambda _: client.request(
        "GET", f"{V1}/sessions/{session}/logs?follow=true"))]


def both(client, session):
    return events(client, session) + subscription(client, session)


def open_all(address, lists, stack):
    """Pipelines that were sent, and whose first answer has begun, but for a log, which has none
    before its session runs: (pipeline, its answers)."""
    made = []
    for steps in lists:
        one = Pipeline(address, steps)
        sock = stack.enter_context(one.connect())
        sock.sendall(b"".join(one.parts))
        made.append((one, stack.enter_context(sock.makefile("rb"))))
    for one, file in made:
        assert one.steps[0].name == "log" or file.peek(1)
    return made


def read_rest(opened):
    """What an answer ended the connection of goes on in another one."""
    for one, file in opened:
        count = one.read(file)
        if count < len(one.steps):
            pipeline.read_all(Pipeline(one.address, one.steps[count:]))


def chunks(steps):
    """All of them, or a few."""
    made = [steps[i:i + CHUNK] for i in range(0, len(steps), CHUNK)]
    return made if pipeline.is_all else pipeline.mixed_up(made)[:8]


@pytest.mark.parametrize("begin", [events, subscription, log, both])
def test_what_follows_a_stream_when_its_session_ends(there, begin):
    admin, steps = there.objects.admin, pipeline.mixed_up(steps_of_all_routes(there.objects))
    lists = chunks(steps)
    with manager_lives(there):
        for i in range(0, len(lists), 4):
            session = there.objects.wait(admin, f"{begin.__name__}-{i}")
            with contextlib.ExitStack() as stack:
                opened = open_all(there.address, [[*begin(admin, session), *chunk, TELLING]
                                                  for chunk in lists[i:i + 4]], stack)
                assert admin.delete(f"/session/{session}").status == 200
                read_rest(opened)


def test_what_follows_a_session_that_is_waited_for(there):
    """Its answer is given when the session settles."""
    admin, steps = there.objects.admin, pipeline.mixed_up(steps_of_all_routes(there.objects))
    signed = Signed(admin)
    with manager_lives(there), contextlib.ExitStack() as stack:
        made = []
        for i, chunk in enumerate(chunks(steps)):
            body = {**batch(f"awaited-{i}", "true", **WAITS), "enqueueOnly": False}
            one = Pipeline(there.address, [signed.step("POST", "/session", body), *chunk, TELLING])
            sock = stack.enter_context(one.connect())
            sock.sendall(b"".join(one.parts))
            made.append((one, stack.enter_context(sock.makefile("rb"))))
        for i in range(len(made)):
            wait_for(lambda name=f"/session/awaited-{i}": admin.get(name).status == 200)
            admin.delete(f"/session/awaited-{i}?forced=true")
        read_rest(made)


def test_what_follows_a_stream_when_the_right_to_it_ends(there):
    """The requests behind it are those of nobody by then."""
    admin = there.objects.admin
    key = admin.post(f"{V1}/keypairs", {"user": USER_EMAIL, "rate_limit": 0}).json
    client = there.client((key["access_key"], key["secret_key"]))
    path, signed = f"{V1}/keypairs/{key['access_key']}", Signed(client)
    session = there.objects.wait(client, "forbidden")
    behind = [signed.step("GET", "/auth?echo={mark}"), *both(client, session),
              signed.step("GET", f"{V1}/sessions"), TELLING]
    with manager_lives(there):
        for _ in range(3):
            with contextlib.ExitStack() as stack:
                opened = open_all(there.address, [
                    [Step("all events", lambda _: client.request("GET", "/events/session?scope=*")),
                     *behind], [*subscription(client, session), *behind],
                    [*events(client, session), *behind]], stack)
                assert admin.send("PATCH", path, {"is_active": False}).status == 200
                read_rest(opened)
            assert admin.send("PATCH", path, {"is_active": True}).status == 200
    assert client.delete(f"/session/{session}").status == 200


def test_what_comes_before_a_stream(there):
    """Its client leaves when the stream has begun; behind a WebSocket's request come bytes of none."""
    client = there.objects.admin
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    session = there.objects.wait(client, "watched")
    sockets = [Step(path, lambda _, path=path: client.request("GET", path, extra=upgrade)) for path in
               (f"{V1}/live", f"{V1}/sessions/box/exec", f"{V1}/sessions/{session}/exec",
                "/stream/session/box/pty", "/stream/session/box/execute")]
    streams = [*events(client, session), *subscription(client, session), *log(client, session),
               *log(client, there.objects.session), *sockets]
    lists = [[*chunk, stream] for chunk in chunks(steps_of_all_routes(there.objects))
             for stream in streams]
    with manager_lives(there):
        pipeline.run(there.address, lists, read_and_leave)
        pipeline.run(there.address, [[*steps, TELLING] for steps in lists], leave(leave_at_once))
    client.delete(f"/session/{session}")


def read_and_leave(one):
    """All answers but the last one, of which the beginning is enough, if it has one by then."""
    with one.connect() as sock, sock.makefile("rb") as file:
        sock.sendall(b"".join(one.parts))
        last = one.steps.pop()
        one.read(file)
        if not one.has_ended and last.name != "log":
            assert file.readline().startswith(b"HTTP/1.1 "), last.name


# ---- peers that go meanwhile ----

@contextlib.contextmanager
def asking(address, lists, workers=3):
    """Clients that send the pipelines again and again; an answer may be any, but no other one's."""
    failures, is_over = [], threading.Event()

    def ask():
        try:
            while not is_over.is_set():
                for steps in lists:
                    pipeline.read_all(Pipeline(address, steps))
        except Exception as error:
            failures.append(error)
    threads = [threading.Thread(target=ask) for _ in range(workers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert not failures, (failures, [])


def cut_often(relay, is_back):
    for i in range(CUTS):
        threading.Event().wait(0.01 * (i % 7))
        relay.cut()
        wait_for(is_back)


def some(steps, telling):
    """A few pipelines of them, in every order."""
    return [[*piece, telling] for piece in
            pipeline.mixed_up(pipeline.pieces(pipeline.neighbours(steps)))[:30]]


def test_the_line_of_the_web_server_is_cut(there):
    lists = some(web_steps(there), web_telling())
    with web_lives(there), manager_lives(there), asking(("127.0.0.1", there.web_port), lists):
        cut_often(there.web_line, lambda: there.browser().ask("GET", "/health").status == 200)


def test_the_line_of_the_storage_host_is_cut(there):
    """While its clients send, and while the manager is asked for folders."""
    own = some(storage_steps(there), TELLING)
    asked = some([one for one in steps_of_all_routes(there.objects) if " /folders" in one.name],
                 TELLING)
    with living(there, "storage", there.is_stored), manager_lives(there), \
            asking(("127.0.0.1", there.port), own, 1), asking(there.address, asked):
        cut_often(there.storage_line, there.is_stored)


def test_the_line_of_the_proxy_is_cut(proxied):
    lists = some(proxy_steps(), proxy_telling())
    with living(proxied, "proxy", proxied.is_proxied), manager_lives(proxied), \
            asking(("127.0.0.1", proxied.port), lists):
        cut_often(proxied.proxy_line, proxied.is_proxied)


def test_the_agent_is_killed(there):
    """While its session is looked into."""
    lists = some([one for one in steps_of_all_routes(there.objects) if "/box" in one.name], TELLING)
    with manager_lives(there), asking(there.address, lists):
        for _ in range(3):
            there.programs["agent"].kill()
            there.programs["agent"].start()
            wait_for(lambda: there.agent().get("connected"), 60, "the agent")


def test_the_manager_is_killed(there):
    """Under its web server and storage host."""
    lists, own = some(web_steps(there), web_telling()), some(storage_steps(there), TELLING)
    with web_lives(there), living(there, "storage", there.is_stored), \
            asking(("127.0.0.1", there.web_port), lists), asking(("127.0.0.1", there.port), own, 1):
        for _ in range(2):
            there.programs["manager"].kill()
            there.start_manager()
            wait_for(there.is_stored)
