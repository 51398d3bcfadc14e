# SPDX-License-Identifier: Apache-2.0
"""The live feed: what consoles show, as it changes."""

import collections
import contextlib
import json
import time

import pytest

from client import WebSocket
from cluster import batch, interactive, wait_for, wait_status

ALL = ["map", "sessions", "queue"]


class Live:
    """A tab that follows."""

    def __init__(self, client, topics=ALL, **more):
        self.socket = WebSocket(client, "/aliquot/v1/live")
        assert self.socket.status == 101, self.socket.head
        self.rows, self.messages = collections.defaultdict(dict), 0
        self.hello = self.receive()
        assert self.hello["type"] == "hello", self.hello
        self.ask(subscribe=topics, **more)

    def ask(self, **message):
        self.socket.send(json.dumps(message))

    def receive(self):
        """The next message, taken over; {} = closed."""
        opcode, payload = self.socket.receive()
        while opcode == 9:
            self.socket.send(payload, opcode=10)
            opcode, payload = self.socket.receive()
        if opcode == 8:
            return {"type": "closed", "code": int.from_bytes(payload[:2], "big"),
                    "reason": payload[2:].decode()}
        message = json.loads(payload)
        self.messages += 1
        if topic := message.get("topic"):
            if message["type"] == "snapshot":
                self.rows[topic] = {}
            for key, fields in message["set"].items():
                self.rows[topic].setdefault(key, {}).update(fields)
            for key in message.get("gone", []):
                self.rows[topic].pop(key, None)
        return message

    def until(self, condition, seconds=30):
        """Messages, until the rows are so."""
        end = time.monotonic() + seconds
        while not (found := condition(self)):
            assert time.monotonic() < end, self.rows
            self.receive()
        return found

    def status(self, session):
        return self.rows["sessions"].get(session, {}).get("status")


@contextlib.contextmanager
def live(client, *args, **more):
    tab = Live(client, *args, **more)
    with contextlib.closing(tab.socket):
        yield tab


@pytest.fixture
def waiting(admin, name):
    """A user's session that waits for more than there is."""
    def make(client):
        made = client.post("/session", interactive(name, wait_for_capacity=True, config={
            "resources": {"cpu": "1000", "mem": "64m"}}, enqueueOnly=True))
        assert made.status == 201, made
        ids.append((client, made.json["sessionId"]))
        return ids[-1][1]
    ids = []
    yield make
    for client, session in ids:
        client.delete(f"/session/{session}")


@pytest.mark.gate
def test_a_session_from_begin_to_end(user, name):
    with live(user) as tab:
        node = tab.until(lambda tab: tab.rows["map"].get("agent"))
        assert node["status"] == "ALIVE" and node["connected"] and "cpu" in node["offered"]
        session = user.post("/session", batch(name, "sleep 1; exit 3", enqueueOnly=True)).json["sessionId"]
        tab.until(lambda tab: tab.status(session) == "RUNNING")
        row = tab.rows["sessions"][session]
        assert row["name"] == name and row["user"] == "user@lablup.com"
        assert row["agents"] == ["agent"]
        assert row["requested_slots"]["cpu"] == row["resources"]["cpu"] == "1"
        tab.until(lambda tab: tab.status(session) == "TERMINATED")
        assert tab.rows["sessions"][session]["exit_code"] == 3
        tab.until(lambda tab: session not in tab.rows["sessions"])


def test_a_quiet_feed_is_alive(user):
    """Who follows what does not change hears all the same that the manager is there."""
    with live(user, ["queue"]) as tab:
        assert tab.receive()["type"] == "snapshot"
        heard = [time.monotonic()]
        for _ in range(2):
            assert tab.receive() == {"type": "alive"}
            heard.append(time.monotonic())
        assert heard[2] - heard[1] >= 4, heard  # no more often than it takes


def test_why_it_waits(user, waiting):
    with live(user, ["queue"]) as tab:
        session = waiting(user)
        row = tab.until(lambda tab: (tab.rows["queue"].get(session) or {}).get("text")
                        and tab.rows["queue"][session])
        assert "cpu" in row["text"] and row["queue_length"] >= 0
        user.delete(f"/session/{session}")
        tab.until(lambda tab: session not in tab.rows["queue"])
        assert not tab.rows["sessions"] and not tab.rows["map"]


def test_whose_sessions_are_seen(user, admin, waiting):
    session = waiting(admin)
    with live(user) as mine, live(admin) as own, live(admin, all=True) as everyones:
        assert (mine.hello["is_admin"], own.hello["is_admin"]) == (False, True)
        for tab in own, everyones:
            assert tab.until(lambda tab: tab.rows["sessions"].get(session))
        other = user.post("/session", batch(session[:8], "sleep 600", enqueueOnly=True)).json["sessionId"]
        for tab in mine, everyones:
            tab.until(lambda tab: tab.status(other) == "RUNNING")
        assert session not in mine.rows["sessions"] and session not in mine.rows["queue"]
        assert other not in own.rows["sessions"]
        mine.ask(subscribe=ALL, all=True)
        assert mine.until(lambda tab: (lambda m: m["type"] == "error" and m)(tab.receive()))["field"] == "all"
        user.delete(f"/session/{other}")
        wait_status(user, other, "TERMINATED", "CANCELLED")


def test_a_keypair_that_is_deactivated_follows_no_more(cluster, admin, user):
    key = admin.post("/aliquot/v1/keypairs", {"user": "user@lablup.com", "policy": "default"})
    assert key.status == 201, key
    with live(cluster.client((key.json["access_key"], key.json["secret_key"]))) as tab:
        assert admin.send("PATCH", f"/aliquot/v1/keypairs/{key.json['access_key']}",
                          {"is_active": False}).status == 200
        while (message := tab.receive())["type"] != "closed":
            pass
        assert message["code"] == 1008 and "keypair" in message["reason"]


@pytest.mark.parametrize("text", [
    "", "null", "[]", "{}", '{"subscribe": "cards"}', '{"subscribe": [1]}', '{"subscribe": ["map"], "all": 7}',
    '{"subscribe": ["map", "map", "map", "map", "map", "map", "map"]}', '{"subscribe": ["map"], "other": 1}', "[" * 4000])
def test_what_is_no_wish(user, text):
    with live(user, []) as tab:
        tab.socket.send(text)
        message = tab.receive()
        assert message["type"] == "error" and message["message"], message
        tab.ask(subscribe=["map", "map"])
        assert tab.until(lambda tab: tab.rows["map"].get("agent"))


def test_too_long_a_wish_and_too_many_tabs(user):
    with live(user, []) as tab:
        tab.socket.send(json.dumps({"subscribe": ["m" * 5000]}))
        assert tab.receive()["type"] == "closed"
    with contextlib.ExitStack() as tabs:
        for _ in range(64):
            tabs.enter_context(live(user, []))
        refused = tabs.enter_context(contextlib.closing(WebSocket(user, "/aliquot/v1/live")))
        assert refused.status == 429


def test_who_reads_slowly_gets_the_newest(cluster, admin, user, name):
    """Its rows are as they are in the end, and the manager has kept little for it."""
    with live(user, ["sessions"]) as slow:
        sessions = [user.post("/session", batch(f"{name}-{i}", "true", enqueueOnly=True)).json["sessionId"]
                    for i in range(20)]
        for session in sessions:
            wait_status(user, session, "TERMINATED")
        before = slow.messages
        slow.until(lambda tab: all(tab.status(session) in ("TERMINATED", None) for session in sessions)
                   and not any(tab.rows["sessions"]))
        assert slow.messages - before < 20 * 12


def test_upgrade_is_needed(user):
    assert user.get("/aliquot/v1/live").status == 400


def test_more_than_one_tick_takes(user, name):
    """Many sessions: they come in parts, and go."""
    bodies = [interactive(f"{name}-{i}", wait_for_capacity=True, enqueueOnly=True, config={
        "resources": {"cpu": "1000", "mem": "64m"}}) for i in range(1500)]
    ids = [item["sessionId"] for part in (bodies[:750], bodies[750:])
           for item in user.post("/aliquot/v1/sessions", part, timeout=60).json["items"]]
    with live(user) as tab:
        tab.until(lambda tab: set(ids) <= set(tab.rows["sessions"]) and set(ids) <= set(tab.rows["queue"]))
        for part in (ids[:750], ids[750:]):
            assert user.delete("/aliquot/v1/sessions", {"sessions": part}, timeout=60).status == 200
        tab.until(lambda tab: not set(ids) & set(tab.rows["sessions"]))
        assert not set(ids) & set(tab.rows["queue"])


def change_member(admin, user, project, how):
    reply = admin.gql("""mutation($gid: UUID!, $props: ModifyGroupInput!) {
        modify_group(gid: $gid, props: $props) { ok msg } }""",
                      {"gid": project, "props": {"user_update_mode": how, "user_uuids": [user]}})
    assert reply.json["data"]["modify_group"]["ok"], reply


def test_nodes_follow_rights_and_memberships(admin, user):
    """An open tab sees the nodes of the resource groups that its user may use now."""
    v1 = "/aliquot/v1"
    project = admin.post(v1 + "/groups", {"name": "live-project", "domain": "default"}).json["id"]
    me = user.gql("{ user { uuid } }").json["data"]["user"]["uuid"]
    assert admin.post(v1 + "/resource-groups", {"name": "live-group"}).status == 201
    with live(user, ["map"]) as tab:
        def sees(is_there):
            tab.until(lambda tab: ("agent" in tab.rows["map"]) == is_there)

        def allow(verb, **whom):
            assert admin.post(f"{v1}/resource-groups/live-group/{verb}", whom).status == 204

        def move(group):
            assert admin.send("PATCH", v1 + "/agents/agent", {"resource_group": group}).status == 204

        sees(True)
        move("live-group")
        try:
            sees(False)
            allow("allow", domain="default")
            sees(True)
            allow("disallow", domain="default")
            sees(False)
            allow("allow", group=project)
            change_member(admin, me, project, "add")
            sees(True)
            change_member(admin, me, project, "remove")
            sees(False)
        finally:
            move("")
        sees(True)


# ---- arrays and runs ----

PIPELINE = """\
name: live
defaults: {image: process, resources: {cpu: 1, mem: 64m}}
tasks:
  first: {command: "true"}
  bad: {needs: [first], command: "exit 3"}
  last: {needs: [bad], command: "true"}
"""


@pytest.fixture
def run(user):
    """A run of the user's that has just begun."""
    reply = user.post("/aliquot/v1/pipeline-runs", {"payload": PIPELINE})
    assert reply.status == 201, reply
    yield reply.json
    user.post(f"/aliquot/v1/pipeline-runs/{reply.json['id']}/cancel", {})


def tasks(tab):
    return {name: row["state"] for name, row in tab.rows["run"].items()}


def test_an_array(user, name):
    with live(user, ["arrays", "sessions"]) as tab:
        made = user.post("/session", {**batch(name, "sleep 1; test $ALIQUOT_ARRAY_INDEX != 2"),
                                      "array": "1-3"})
        assert made.status == 201, made
        array = made.json["sessionId"]
        row = tab.until(lambda tab: tab.rows["arrays"].get(array))
        assert row["label"] == f"{name}[1-3]" and row["size"] == 3
        tab.until(lambda tab: tab.rows["arrays"][array]["running"])
        elements = [row["array"] for row in tab.rows["sessions"].values() if row["array"]]
        assert {element["id"] for element in elements} == {array}
        tab.until(lambda tab: array not in tab.rows["arrays"])
    shown = user.get(f"/aliquot/v1/arrays/{array}").json
    assert shown["terminated_at"] and shown["succeeded"] + shown["failed"] == 3


@pytest.mark.gate
def test_a_run_and_its_tasks(user, run):
    with live(user, ["runs", "run"], run=run["name"]) as tab:
        tab.until(lambda tab: tasks(tab) == {"first": "succeeded", "bad": "failed", "last": "skipped"})
        assert tab.rows["run"]["bad"]["reason"].endswith("exit code 3")
        tab.until(lambda tab: run["id"] not in tab.rows["runs"])
        assert user.post(f"/aliquot/v1/pipeline-runs/{run['id']}/resume", {}).status == 200
        tab.until(lambda tab: tab.rows["run"]["bad"]["attempt"] == 2 and tasks(tab)["bad"] == "failed")


def test_a_run_that_has_ended(user, run):
    path = f"/aliquot/v1/pipeline-runs/{run['id']}"
    wait_for(lambda: user.get(path).json["state"] == "failed", 30, "its end")
    with live(user, ["run"], run=run["id"]) as tab:
        tab.until(lambda tab: tasks(tab) == {"first": "succeeded", "bad": "failed", "last": "skipped"})


def test_runs_of_others(admin, user, domain_admin, run):
    for other in (domain_admin, admin):
        with live(other, ["run", "runs"], run=run["id"], all=True) as tab:
            tab.until(lambda tab: "first" in tab.rows["run"])
    mine = admin.post("/aliquot/v1/pipeline-runs", {"payload": PIPELINE}).json
    for other in (user, domain_admin):
        with live(other, ["runs", "run"], run=mine["id"]) as tab:
            said = {"type": None}
            while said["type"] != "error":
                said = tab.receive()
            assert said["field"] == "run", said
            assert not tab.rows["run"] and mine["id"] not in tab.rows["runs"]


def test_topics_that_are_followed_go_on(user):
    with live(user, ["queue"]) as tab:
        assert tab.receive()["topic"] == "queue"
        tab.ask(subscribe=["queue", "map"])
        said = tab.receive()
        assert (said["type"], said["topic"]) == ("snapshot", "map")
        tab.ask(subscribe=["queue", "run"])
        assert tab.receive()["field"] == "run"
