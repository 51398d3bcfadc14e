# SPDX-License-Identifier: Apache-2.0
"""A node's agent that says anything, in any order, changes nothing that is another agent's."""

import json
import random
import uuid

from cluster import Cluster, batch, interactive, wait_for, wait_status
from link_agent import ENDS, LinkAgent

MESSAGES = 3000  # twice
GROWTH_MAX = 32 << 20  # of the manager, from the first half to the second
OWN, HONEST = ["own1", "own2"], ["honest1", "honest2"]
TIMES = [0, 1, 2**62, 2**63 - 1]
STATES = ["CREATING", "RUNNING", "RESTARTING", "TERMINATING", "TERMINATED", "ERROR"]


def kernels_of(cluster, names):
    shown = [cluster.client().get("/aliquot/v1/sessions/" + name).json for name in names]
    return [(session["id"], session["kernels"][0]["id"]) for session in shown]


def look_at(cluster):
    """What the lies must not change, with the numbers that change by themselves left out."""
    client = cluster.client()
    sessions = [client.get("/aliquot/v1/sessions/" + name).json for name in HONEST]
    agent = client.get("/aliquot/v1/agents/honest").json
    return ([{key: session[key] for key in ("id", "name", "status", "agents") if key in session}
             for session in sessions], agent["status"], agent["connected"],
            agent.get("available_slots"), agent.get("occupied_slots"))


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) << 10


class Liar:
    def __init__(self, agent, kernels, seed):
        self.agent, self.kernels, self.random = agent, kernels, random.Random(seed)

    def ids(self):
        session, kernel = self.random.choice(self.kernels)
        strange = str(uuid.UUID(int=self.random.getrandbits(128)))
        other, _ = self.random.choice(self.kernels)
        return self.random.choice([(session, kernel)] * 3 + [(strange, kernel), (other, kernel),
                                                             (session, strange)])

    def report(self):
        session, kernel = self.ids()
        return {"kernel_id": kernel, "session_id": session, "attempt": 1,
                "state": self.random.choice(STATES), "has_exit": True, "exit_code": 1,
                "reason": "self-terminated", "alloc": {"cpu": {"0": "1"}, "x.y": {"a": "1"}},
                "service_ports": [], "slots": {"cpu": "1", "mem": "67108864"},
                "prepared": {"cpu": "9"}, "trial": 1, "error_kind": "image-x", "error_text": "t",
                "misuse": "m", "at_usec": 1, "lease_usec": self.random.choice(TIMES),
                "lease_grace_usec": self.random.choice(TIMES)}

    def message(self):
        rnd, (session, kernel) = self.random, self.ids()
        key = "k%d" % rnd.randrange(10000)
        return rnd.choice([
            lambda: {"type": "kernel.status", **self.report()},
            lambda: {"type": "heartbeat", "incarnation": str(uuid.uuid4()), "seq": 1,
                     "received_seq": 0, "at_usec": 1, "uptime_usec": rnd.choice(TIMES),
                     "slots": {"cpu": ["count", "4"], key + ".shares": ["count", "1"]},
                     "devices": [{"id": key, "slot": key + ".shares", "amount": "1"}],
                     "plugins": [], "kernels": [self.report() for _ in range(rnd.randrange(5))]},
            lambda: {"type": "image.status", "session_id": session, "kernel_id": kernel,
                     "image": "sh", "state": rnd.choice(["fetching", "ready", "failed"]),
                     "done_bytes": 1, "total_bytes": 1, "error_text": "t"},
            lambda: {"type": "image.list", "images": [{"names": [key], "digest": "sha256:0",
                                                       "labels": {}, "size_bytes": 1}]},
            lambda: {"type": "statistics", "at_usec": rnd.randrange(1, 1 << 50),
                     "interval_usec": 1, "metrics": [{"key": key, "unit": 1}],
                     "node": [[0, 1]], "devices": [{"device": key, "values": [[0, 1, 2]]}],
                     "kernels": [{"kernel_id": kernel, "session_id": session, "attempt": 1,
                                  "values": [[0, 1]]}]},
            lambda: {"type": "stream.refused", "stream_id": kernel, "kind": "x", "text": "t"},
            lambda: {"type": "service.status", "job_id": kernel, "unit": "x", "state": "a=b"},
            lambda: {"type": rnd.choice(["kernel.create", "kernel.destroy", "kernel.forget",
                                         "drain", "welcome", "joined", "fenced", "stream.open",
                                         "stream.hello", "image.order", "service.order", "later"]),
                     **self.report(), "slots": {}, "stream_id": kernel, "key": "k", "kind": "logs",
                     "job_id": kernel, "action": "pull", "incarnation": session, "protocol": 1,
                     "cert": "c", "ca": "c"},
            lambda: self.agent.hello(), lambda: {"type": "bye"} if rnd.random() < 0.1 else {},
        ])()

    def spoil(self, value, depth=0):
        """Another value in its place, or in that of something inside it."""
        rnd = self.random
        if isinstance(value, dict) and value and depth < 6 and rnd.random() < 0.85:
            key = rnd.choice([*value])
            if rnd.random() < 0.2:
                return {k: v for k, v in value.items() if k != key}
            return {**value, key: self.spoil(value[key], depth + 1)}
        if isinstance(value, list) and value and depth < 6 and rnd.random() < 0.7:
            i = rnd.randrange(len(value))
            return [*value[:i], self.spoil(value[i], depth + 1), *value[i + 1:] * rnd.randrange(3)]
        deep = "x"
        for _ in range(rnd.choice([2, 900])):
            deep = [deep]
        return rnd.choice([None, True, -1, 0, (1 << 63) - 1, 1 << 63, -(1 << 63), 1e300, -0.5, "",
                           "x" * 100000, "\x1b[2J\n", "\x00", "NaN", "1e400", {}, [], [[]], {"": {}},
                           [1] * 2000, deep, "\u202e", "../../x", "%s%n"])

    def lie(self):
        rnd, agent, message = self.random, self.agent, self.message()
        for _ in range(rnd.choice([0, 0, 1, 1, 2, 5])):
            message = self.spoil(message)
        body = json.dumps(message).encode()
        if rnd.random() < 0.02:
            at = rnd.randrange(len(body))
            body = rnd.choice([body[:at], body[:at] + b"NaN" + body[at:], body + b"{}", b"\xff" * 9,
                               body.replace(b'"type"', b'"type": "bye", "type"')])
        kind = rnd.random()
        if kind < 0.5 and body:
            agent.seq += 1
            agent.send(body, agent.seq)
        elif kind < 0.53:
            agent.send(body, rnd.choice([max(agent.seq - 1, 1), agent.seq + 2, 1 << 63]))
        elif kind < 0.54:
            agent.send(body, 0, rnd.choice([1 << 40, (1 << 64) - 1]))
        elif kind < 0.55:
            agent.socket.sendall(rnd.randbytes(rnd.randrange(1, 60)))
        else:
            agent.send(body)
        return agent.read()


def start_sessions(cluster):
    """Two on the honest agent, then two on the one that the test plays; returns that."""
    cluster.start_agent("honest")
    for name in HONEST:
        cluster.client().post("/aliquot/v1/sessions", interactive(name))
        wait_status(cluster.client(), name, "RUNNING")
    cluster.join("liar")
    agent = LinkAgent(cluster, "liar")
    assert agent.connect()
    assert cluster.client().post("/aliquot/v1/agents/honest/drain", {}).status < 300
    agent.send({"type": "heartbeat", "incarnation": agent.incarnation, "seq": 1, "kernels": []})
    for name in OWN:
        cluster.client().post("/aliquot/v1/sessions", interactive(name))
        order = agent.wait(("kernel.create",))
        agent.tell({"type": "kernel.status", "kernel_id": order["kernel_id"],
                    "session_id": order["session_id"], "attempt": 1, "state": "RUNNING"})
        wait_status(cluster.client(), name, "RUNNING")
    assert cluster.client().post("/aliquot/v1/agents/honest/undrain", {}).status < 300
    return agent


def tell_lies(liar):
    """How often it was put out, or went."""
    agent, ends = liar.agent, 0
    for _ in range(MESSAGES):
        try:
            alive = liar.lie()
        except ENDS:
            alive = False
        agent.said.clear()
        while not alive:
            ends += 1
            try:
                alive = agent.connect(incarnation=str(uuid.uuid4()) if ends % 2 else None)
            except ENDS:
                alive = False
    return ends


def test_lies_change_only_what_is_the_liars_own():
    with Cluster(ALIQUOT_AGENTS_HEARTBEAT="1s", ASAN_OPTIONS="quarantine_size_mb=1") as cluster:
        cluster.start_manager()
        agent = start_sessions(cluster)
        before, pid = look_at(cluster), cluster.programs["manager"].pid
        lines = cluster.log_of("manager").count("\n")
        liar = Liar(agent, kernels_of(cluster, HONEST + OWN), "lies")
        ends, memory = tell_lies(liar), memory_of(pid)
        ends += tell_lies(liar)
        agent.close()
        assert ends > 20
        assert cluster.programs["manager"].process.poll() is None
        wait_for(lambda: look_at(cluster) == before, 30,
                 lambda: f"{before}, it is {look_at(cluster)}")
        cluster.check_audits()
        assert memory_of(pid) - memory < GROWTH_MAX
        written = cluster.log_of("manager").count("\n") - lines
        print(f"{ends} ends, {written} lines, {memory >> 20} MiB, then {memory_of(pid) >> 20} MiB")
        assert written < 300, cluster.logs()
        for name in HONEST:
            cluster.client().delete(f"/session/{name}?forced=true")
            wait_status(cluster.client(), name, "TERMINATED")
        cluster.client().post("/aliquot/v1/sessions", batch("after", "echo here"))
        wait_status(cluster.client(), "after", "TERMINATED")
        assert cluster.cli("logs", "after").stdout.strip() == "here"
        cluster.stop()
