# SPDX-License-Identifier: Apache-2.0
"""The extender of a kube-scheduler: nodes and pods of an API server in, nodes and cards out."""

import concurrent.futures
import contextlib
import http.client
import json
import random
import re
import signal
import subprocess
import time
import uuid

import pytest

from fake_api_server import ApiServer
from ports import free_ports
from world import BUILD, World

MEMORY, COMPUTE = "alnair/vgpu-memory", "alnair/vgpu-compute"
CARDS, PLACEMENT, POLICY = "aliquot/cards", "aliquot/placement", "aliquot/policy"
STAMP = "ai.centaurus.io/scheduler-timestamp"


def wait_for(is_good, what):
    end = time.monotonic() + 10
    while not is_good():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def card(node, number, memory=32, compute=100, healthy=True):
    return {"id": f"GPU-{node}-{number}", "model": "GPU", "memory": memory, "compute": compute,
            "numa": 0, "healthy": healthy}


def node(name, *cards, given=(), text=None):
    if text is None:
        text = json.dumps({"cards": list(cards), "containers": list(given)})
    return {"metadata": {"name": name, "annotations": {CARDS: text}}}


def given(pod, container, on, memory, compute=0):
    return {"pod": pod, "container": container, "card": on, "memory": memory, "compute": compute}


def container(name, memory=0, compute=0, **more):
    limits = {kind: str(amount) for kind, amount in ((MEMORY, memory), (COMPUTE, compute)) if amount}
    return {"name": name, "image": "i", "resources": {"limits": {"cpu": "500m", **limits}}, **more}


def pod(name, memory=0, compute=0, *, containers=None, init=(), on=None, policy=None, phase=None,
        placement=None, scheduler="aliquot", priority=0):
    annotations = {POLICY: policy} if policy else {}
    if placement is not None:
        annotations[PLACEMENT] = placement if isinstance(placement, str) else json.dumps(placement)
    spec = {"containers": containers or [container("main", memory, compute)],
            "schedulerName": scheduler, "priority": priority}
    if init:
        spec["initContainers"] = list(init)
    if on:
        spec["nodeName"] = on
    return {"metadata": {"name": name, "namespace": "team", "uid": str(uuid.uuid4()),
                         "annotations": annotations},
            "spec": spec, "status": {"phase": phase or ("Running" if on else "Pending")}}


def uid(of):
    return of["metadata"]["uid"]


class Scheduler(World):
    def __init__(self, policy="bin-packing"):
        super().__init__()
        self.api = ApiServer()
        self.port = free_ports(2)
        (self.folder / "token").write_text("secret")
        self.config = self.folder / "k8s.toml"
        self.config.write_text(f"""\
[kubernetes]
url = "{self.api.url}"
token = "{self.folder}/token"
ca = "/etc/ssl/certs/ca-certificates.crt"
[scheduler]
listen = "127.0.0.1:{self.port}"
metrics = "127.0.0.1:{self.port + 1}"
policy = "{policy}"
[webhook]
listen = "off"
""")
        self.log = (self.folder / "log").open("w")
        self.process = None

    def start(self, is_complete=True):
        self.process = subprocess.Popen(
            [BUILD / "aliquot-k8s", "--config", self.config, "scheduler"], env=self.env,
            stdin=subprocess.DEVNULL, stderr=self.log)
        if is_complete:
            wait_for(self.is_complete, "it does not know all")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.said()
        assert "Sanitizer" not in self.said(), self.said()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def said(self):
        return (self.folder / "log").read_text()

    def send(self, method, path, body=None, port=0):
        connection = http.client.HTTPConnection("127.0.0.1", self.port + port, timeout=60)
        try:
            connection.request(method, path, body if isinstance(body, (str, bytes, type(None)))
                               else json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def is_complete(self):
        with contextlib.suppress(OSError):
            return self.send("GET", "/health")[0] == 200
        return False

    def ask(self, verb, body):
        status, answer = self.send("POST", f"/{verb}", body)
        assert status == 200, answer
        return json.loads(answer)

    def names(self):
        return [each["metadata"]["name"] for each in self.api.objects.all("nodes")]

    def filter(self, of, nodes=None):
        answer = self.ask("filter", {"Pod": of, "Nodes": None, "NodeNames": nodes or self.names()})
        assert set(answer) == {"Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes",
                               "Error"}
        assert not answer["Error"], answer
        return answer

    def bind(self, of, to):
        metadata = of["metadata"]
        return self.ask("bind", {"PodName": metadata["name"], "PodUID": metadata["uid"],
                                 "PodNamespace": metadata["namespace"], "Node": to})["Error"]

    def get(self, of):
        return self.api.objects.get("pods", f"{of['metadata']['namespace']}/{of['metadata']['name']}")

    def placement(self, of):
        return json.loads(self.get(of)["metadata"]["annotations"][PLACEMENT])

    def put(self, *objects):
        for each in objects:
            self.api.objects.put("pods" if "spec" in each else "nodes", each)

    def metrics(self):
        text = self.send("GET", "/metrics", port=1)[1]
        return {name: float(value) for name, value in re.findall(r"^aliquot_kube_(\S+) (\S+)$",
                                                                 text, re.MULTILINE)}

    def used(self):
        """Units of memory and compute that the books say are held."""
        metrics = self.metrics()
        return int(metrics["memory_units_used"]), int(metrics["compute_units_used"])

    def wait_used(self, *amounts):
        wait_for(lambda: self.used() == amounts, f"{amounts} are held, not {self.used()}")

    def knows(self, count):
        wait_for(lambda: self.metrics()["nodes"] == count, f"{count} nodes")

    def schedule(self, of):
        """As kube-scheduler does: the node and the cards, or None and why."""
        if not any(uid(of) == uid(each) for each in self.api.objects.all("pods")):
            self.put(of)
        answer = self.filter(of)
        if not answer["NodeNames"]:
            return None, {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}
        [name] = answer["NodeNames"]
        assert self.bind(of, name) == ""
        return name, self.placement(of)

    def end(self):
        super().end()
        self.api.end()


@contextlib.contextmanager
def running(*objects, **settings):
    with Scheduler(**settings) as it:
        it.put(*objects)
        it.start()
        yield it
        it.stop()


def two_nodes():
    """Node a: a card with 24 of 32 in use, and an empty one; node b: two with 8 in use."""
    busy = [pod("x", 24, on="a", placement={"main": "GPU-a-0"}),
            pod("y", 8, on="b", placement={"main": "GPU-b-0"}),
            pod("z", 8, on="b", placement={"main": "GPU-b-1"})]
    return [node("a", card("a", 0), card("a", 1)), node("b", card("b", 0), card("b", 1)), *busy]


@pytest.mark.gate
def test_each_policy_chooses_its_card():
    with running(*two_nodes()) as it:
        assert it.used() == (40, 0)
        assert it.filter(pod("p", 8, 50))["NodeNames"] == ["a"]
        assert it.used() == (48, 50)  # it is assumed there
        packed, spread, large = pod("packed", 8, 50), pod("spread", 8, 50,
                                                          policy="high-performance"), pod("l", 30)
        assert it.ask("prioritize", {"Pod": large, "NodeNames": ["a", "b"]}) == [
            {"Host": "a", "Score": 9}, {"Host": "b", "Score": 0}]  # 30 of 32
    with running(*two_nodes()) as it:
        assert it.ask("prioritize", {"Pod": packed, "NodeNames": ["a", "b"]}) == [
            {"Host": "a", "Score": 10}, {"Host": "b", "Score": 5}]
        assert it.ask("prioritize", {"Pod": spread, "NodeNames": ["a", "b"]}) == [
            {"Host": "a", "Score": 8}, {"Host": "b", "Score": 5}]
        assert it.schedule(packed) == ("a", {"main": "GPU-a-0"})
        assert it.schedule(spread) == ("a", {"main": "GPU-a-1"})
        answer = it.filter(large)
        assert answer["NodeNames"] == []
        assert answer["FailedNodes"] == {"a": "no card has 30 of memory free: best has 24",
                                         "b": "no card has 30 of memory free: best has 24"}
        stamp = it.get(packed)["metadata"]["annotations"][STAMP]
        assert abs(int(stamp) / 1e9 - time.time()) < 3600
        assert it.get(packed)["spec"]["nodeName"] == "a"
    with running(*two_nodes()) as it:
        assert it.schedule(pod("s", 8, scheduler="alnair-high-performance")) == (
            "a", {"main": "GPU-a-1"})
        assert it.schedule(pod("t", 8, scheduler="alnair-cost-saving", policy="nonsense")) == (
            "a", {"main": "GPU-a-0"})
        assert it.schedule(pod("l", 24)) == ("a", {"main": "GPU-a-1"})
    with running(*two_nodes(), policy="high-performance") as it:
        assert it.schedule(pod("s", 8)) == ("a", {"main": "GPU-a-1"})
    with running(*two_nodes(), policy="fragmentation") as it:
        assert it.schedule(pod("f", 32)) == ("a", {"main": "GPU-a-1"})


@pytest.mark.gate
def test_a_node_is_refused_with_what_is_short():
    full = pod("full", 8, 90, on="n", placement={"main": "GPU-n-0"})
    with running(node("n", card("n", 0, 32)), node("small", card("small", 0, 16)),
                 node("ill", card("ill", 0, healthy=False)), node("none"),
                 node("broken", text="{[" ), node("odd", text='{"cards":[{"id":"x"}]}'),
                 {"metadata": {"name": "plain"}}, full) as it:
        answer = it.filter(pod("p", 20, 50), [*it.names(), "new"])
        assert answer["NodeNames"] == []
        assert answer["FailedNodes"] == {
            "n": "no card has 20 of memory and 50 of compute free: best has 24 and 10",
            "ill": "the card that is large enough is unhealthy",
            "new": "the node is not known yet"}
        none = "no GPU of which pods get parts"
        assert answer["FailedAndUnresolvableNodes"] == {
            "small": "no card has 20 of memory and 50 of compute: largest has 16 and 100",
            "none": none, "broken": none, "odd": none, "plain": none}
        assert it.filter(pod("c", 0, 20), ["n"])["FailedNodes"] == {
            "n": "no card has 20 of compute free: best has 10"}
        assert it.filter(pod("c", 0, 10), ["n"])["NodeNames"] == ["n"]
        assert it.filter(pod("cpu"))["NodeNames"] == it.names()  # asks for nothing of ours
        assert it.said().count("broken: annotation aliquot/cards") == 1
        assert it.said().count("odd: annotation aliquot/cards") == 1
        refused = it.metrics()
        assert refused['refused_total{reason="no-card"}'] == 4
        assert refused['refused_total{reason="too-large"}'] == 1
        assert refused['refused_total{reason="unknown-node"}'] == 1
        assert refused["filter_seconds_count"] == 4


def test_containers_of_a_pod():
    with running(node("n", card("n", 0), card("n", 1))) as it:
        three = pod("three", containers=[container("a", 20, 30), container("b", 12, 70),
                                         container("c", 20), container("none")])
        name, where = it.schedule(three)
        assert name == "n" and set(where) == {"a", "b", "c"}
        assert where["a"] != where["c"]
        it.wait_used(52, 100)
        # no room for both: none of it is taken
        assert it.schedule(pod("two", containers=[container("a", 8), container("b", 8)])) == (
            None, {"n": "the cards have no room for the pod's 2 containers together"})
        assert it.used() == (52, 100)
        assert it.schedule(pod("one", containers=[container("a", 8), container("b", 4)]))[0] == "n"
        it.wait_used(64, 100)
    with running(node("n", card("n", 0, 10), card("n", 1, 10))) as it:
        # the largest first, or 6 and 4 would share the first card with the 6 of neither
        name, where = it.schedule(pod("p", containers=[container("a", 4), container("b", 4),
                                                       container("c", 6), container("d", 6)]))
        assert name == "n" and sorted(where.values()) == ["GPU-n-0"] * 2 + ["GPU-n-1"] * 2


def test_init_containers_give_on_what_they_had():
    with running(node("n", card("n", 0), card("n", 1))) as it:
        # the kubelet gives it on: 20 of one card, not 20 + 8 + 8
        name, where = it.schedule(pod("p", init=[container("prepare", 20, 10)], containers=[
            container("a", 8, 60), container("b", 8)]))
        assert name == "n" and len(set(where.values())) == 1
        assert set(where) == {"prepare", "a", "b"}
        it.wait_used(20, 60)
        # what goes on beside the others keeps its own
        name, where = it.schedule(pod("q", init=[container("beside", 12, restartPolicy="Always"),
                                                 container("first", 2)], containers=[
            container("a", 20)]))
        assert name == "n" and where["first"] == where["a"] != where["beside"]
        it.wait_used(52, 60)


@pytest.mark.gate
def test_what_the_kubelet_did_is_true():
    first, second = pod("first", 20, 50), pod("second", 12)
    with running(node("n", card("n", 0), card("n", 1))) as it:
        assert it.schedule(first) == ("n", {"main": "GPU-n-0"})
        # the kubelet took another card, and has a pod that nobody knows
        it.put(node("n", card("n", 0), card("n", 1), given=[
            given(uid(first), "main", "GPU-n-1", 20, 50), given("gone", "main", "GPU-n-0", 30),
            given(uid(first), "other", "GPU-n-0", 9), given("gone", "main", "GPU-elsewhere", 9)]))
        it.wait_used(50, 50)
        assert it.schedule(second) == ("n", {"main": "GPU-n-1"})
        it.wait_used(62, 50)
        assert it.schedule(pod("third", 3))[0] is None
        # one that has ended holds nothing, whatever is listed
        ended = it.get(first)
        ended["status"]["phase"] = "Succeeded"
        it.put(ended)
        it.wait_used(42, 0)
        it.api.objects.delete("pods", "team/second")
        it.wait_used(30, 0)
        # an ill card keeps what it has and gets nothing
        it.put(node("n", card("n", 0), card("n", 1, healthy=False)))
        wait_for(lambda: it.metrics()["cards_unhealthy"] == 1, "it is ill")
        assert it.schedule(pod("fourth", 30)) == ("n", {"main": "GPU-n-0"})
        assert it.schedule(pod("fifth", 3))[1] == {"n": "no card has 3 of memory free: best has 2"}


def test_pods_that_others_bound_hold_what_they_may_get():
    with running(node("n", card("n", 0), card("n", 1)), pod("a", 24, on="n"),
                 pod("b", 8, 10, on="n", placement="{nonsense"),
                 pod("c", 20, on="n", placement={"main": "GPU-n-7", "x": 5}),
                 pod("placed", 30, on="n", placement={"main": "GPU-n-0"}),  # comes first
                 pod("early", 5, placement={"main": "GPU-n-1"}),
                 pod("elsewhere", 8, on="new")) as it:
        assert it.used() == (62, 10)  # for c there is no room anywhere
        assert it.schedule(pod("d", 3))[0] is None
        assert it.schedule(pod("e", 2)) == ("n", {"main": "GPU-n-0"})
        wait_for(lambda: it.metrics()["pods_placed"] == 6, "six pods")
        it.put(node("new", card("new", 0)))
        it.wait_used(72, 10)


@pytest.mark.gate
def test_a_restart_in_the_middle_changes_nothing():
    waiting, bound = pod("waiting", 20), pod("bound", 20)
    with running(node("n", card("n", 0))) as it:
        assert it.schedule(bound)[0] == "n"
        it.kill()
        it.put(waiting)
        it.start()
        assert it.used() == (20, 0)
        assert it.schedule(waiting)[0] is None
        it.api.objects.delete("pods", "team/bound")
        it.wait_used(0, 0)
        assert it.filter(waiting)["NodeNames"] == ["n"]
        it.kill()  # what was assumed is forgotten, and decided again
        it.start()
        assert it.used() == (0, 0)
        assert it.bind(waiting, "n") == ""
        assert it.placement(waiting) == {"main": "GPU-n-0"}
        it.wait_used(20, 0)


def test_watches_that_end_and_begin_too_late():
    with running(node("n", card("n", 0)), pod("a", 8, on="n"), pod("b", 8, on="n")) as it:
        it.wait_used(16, 0)
        it.api.end_watches()
        it.put(pod("c", 4, on="n"))
        it.wait_used(20, 0)
        it.api.objects.delete("pods", "team/a")
        it.api.end_watches(forget=True)
        it.wait_used(12, 0)
        it.put(pod("d", 4, on="n"))
        it.wait_used(16, 0)


def test_what_is_not_known_yet_is_refused():
    with Scheduler() as it:
        it.api.end()  # nobody answers
        it.start(is_complete=False)
        wait_for(lambda: "is served" in it.said(), "it serves")
        assert it.send("GET", "/health")[0] == 503
        said = it.ask("filter", {"Pod": pod("p", 8), "NodeNames": ["n"]})
        assert said["NodeNames"] == [] and "not all known yet" in said["Error"]
        assert "not all known yet" in it.bind(pod("p", 8), "n")
        for verb in ("prioritize", "preempt"):
            assert it.send("POST", f"/{verb}", {"Pod": pod("p", 8), "NodeNames": ["n"]})[0] == 503
        it.stop()


def test_binds_that_come_to_nothing():
    with running(node("n", card("n", 0)), node("m", card("m", 0, 16))) as it:
        one, two, three = pod("one", 20), pod("two", 8), pod("three", 30)
        it.put(one, two, three)
        assert it.filter(one)["NodeNames"] == ["n"]
        it.wait_used(20, 0)
        it.api.refusals.append((500, "InternalError", "etcd is away"))
        assert "etcd is away" in it.bind(one, "n")
        assert it.used() == (20, 0)  # it may be bound all the same
        assert it.filter(one)["NodeNames"] == ["n"]
        assert it.filter(three)["NodeNames"] == []
        wrong = {"metadata": {**one["metadata"], "uid": "another"}}
        assert "no pod team/one" in it.bind(wrong, "n")
        assert "not known" in it.bind(one, "nowhere")
        assert it.bind(one, "n") == ""
        assert "already" in it.bind(one, "n")
        it.wait_used(20, 0)
        # kube-scheduler takes another node than filter said
        assert it.filter(two)["NodeNames"] == ["n"]
        assert it.bind(two, "m") == ""
        assert it.placement(two) == {"main": "GPU-m-0"}
        it.wait_used(28, 0)
        assert it.bind(three, "m") == ("m: no card has 30 of memory: largest has 16")
        # somebody else bound it, or it is gone, before the watch says so
        four = pod("four", 4)
        it.put(four)
        assert it.filter(four)["NodeNames"] == ["m"]
        it.api.refusals.append((409, "Conflict", "pod four is already assigned"))
        assert "already assigned" in it.bind(four, "m")
        it.wait_used(28, 0)
        it.api.refusals.append((404, "NotFound", 'pods "four" not found'))
        assert "not found" in it.bind(four, "m")
        metrics = it.metrics()
        assert (metrics["pods_bound_total"], metrics["bind_failures_total"]) == (2, 3)


def test_the_end_while_a_bind_is_under_way():
    one, two = pod("one", 8), pod("two", 8)
    with running(node("n", card("n", 0)), one, two) as it:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            it.api.delay = 3
            binds = [pool.submit(it.bind, each, "n") for each in (one, two)]
            wait_for(lambda: it.used() == (16, 0), "both are asked for")
            it.stop()
            assert [bind.result() for bind in binds] == ["the scheduler ends"] * 2
        it.start()


def test_preemption_makes_room_on_one_card():
    low = [pod(f"low{i}", 16, on="n", placement={"main": f"GPU-n-{i // 2}"}, priority=i)
           for i in range(4)]
    other = pod("other", 30, on="m", placement={"main": "GPU-m-0"}, priority=50)
    strange = str(uuid.uuid4())
    with running(node("n", card("n", 0), card("n", 1)), node("m", card("m", 0)), *low, other) as it:
        high = pod("high", 32, priority=10)

        def preempt(victims, of=high):
            return it.ask("preempt", {"Pod": of, "NodeNameToVictims": None,
                                      "NodeNameToMetaVictims": {
                name: {"Pods": [{"UID": each} for each in pods], "NumPDBViolations": 2}
                for name, pods in victims.items()}})["NodeNameToMetaVictims"]

        def victims(answer, name):
            assert answer[name]["NumPDBViolations"] == 2
            return [each["UID"] for each in answer[name]["Pods"]]

        # those on one card are enough; what holds nothing of ours is left to who proposes it
        answer = preempt({"n": [uid(low[0]), strange, uid(low[1])]})
        assert victims(answer, "n") == [uid(low[0]), strange, uid(low[1])]
        # one on each card: a third has to go, the one of least priority that will do
        answer = preempt({"n": [uid(low[0]), uid(low[2])], "m": [], "nowhere": [strange]})
        assert set(answer) == {"n"}
        assert victims(answer, "n") == [uid(low[0]), uid(low[2]), uid(low[1])]
        assert victims(preempt({"m": [uid(other)]}), "m") == [uid(other)]
        assert preempt({"n": [uid(low[3])]}, pod("none", 33, priority=10)) == {}
        assert victims(preempt({"n": [strange]}, pod("cpu")), "n") == [strange]
        full = it.ask("preempt", {"Pod": high, "NodeNameToVictims": {
            "n": {"Pods": low[2:], "NumPDBViolations": 0}}})["NodeNameToMetaVictims"]
        assert [each["UID"] for each in full["n"]["Pods"]] == [uid(each) for each in low[2:]]
        assert it.used() == (94, 0)


def test_room_that_was_made_for_a_pod_is_kept_for_it():
    low = pod("low", 32, on="n", placement={"main": "GPU-n-0"})
    high = pod("high", 32, priority=10)
    high["status"]["nominatedNodeName"] = "n"
    with running(node("n", card("n", 0), card("n", 1)), low, high,
                 pod("other", 20, on="n", placement={"main": "GPU-n-1"})) as it:
        assert it.used() == (52, 0)  # nobody has gone yet
        it.api.objects.delete("pods", "team/low")
        wait_for(lambda: it.metrics()["pods_placed"] == 1, "the pod is gone")
        assert it.used() == (52, 0)  # it is held for the one that is nominated
        assert it.schedule(pod("again", 32, priority=9))[0] is None
        assert it.schedule(pod("small", 12))[0] == "n"
        assert it.filter(pod("higher", 32, priority=11))["NodeNames"] == ["n"]
        it.kill()
        it.start()
        it.wait_used(64, 0)
        assert it.schedule(high) == ("n", {"main": "GPU-n-0"})
        it.wait_used(64, 0)
        assert it.metrics()["pods_waiting"] == 1  # again


@pytest.mark.parametrize("old, new, says", [
    ("listen = \"127.0.0.1", "listen = \"0.0.0.0", "scheduler.listen"),
    ("policy = \"bin-packing", "policy = \"tetris", "scheduler.policy"),
    ("url = ", "#url = ", "kubernetes.url")])
def test_settings_that_cannot_be(old, new, says):
    with Scheduler() as it:
        it.config.write_text(it.config.read_text().replace(old, new))
        it.start(is_complete=False)
        assert it.process.wait(30) == 1
        assert says in it.said() and "Sanitizer" not in it.said()


@pytest.mark.parametrize("body", [
    "", "{", "[]", "{}", '{"Pod":1,"NodeNames":[]}', '{"Pod":{},"NodeNames":{}}',
    json.dumps({"Pod": pod("p", 8), "NodeNames": None, "Nodes": {"items": []}}),
    json.dumps({"Pod": pod("p", 8), "NodeNames": [1, None, {}]}),
    json.dumps({"Pod": pod("p", containers=[container("a", -1)]), "NodeNames": ["n"]}),
    json.dumps({"Pod": pod("p", containers=[container("a", "x")]), "NodeNames": ["n"]}),
    json.dumps({"Pod": pod("p", containers=[container(f"c{i}", 1) for i in range(17)]),
                "NodeNames": ["n"]}),
    json.dumps({"Pod": pod("p", 999999999), "NodeNames": ["n"]})], ids=range(12))
def test_questions_that_are_none(body):
    with running(node("n", card("n", 0))) as it:
        answer = it.ask("filter", body)
        assert answer["Error"] or not answer["NodeNames"]
        assert it.ask("bind", body)["Error"]
        for verb in ("prioritize", "preempt"):
            assert it.send("POST", f"/{verb}", body)[0] in (200, 400)
        assert it.used() == (0, 0)
        assert it.filter(pod("q", 8))["NodeNames"] == ["n"]


def test_no_card_is_ever_over():
    """Two hundred pods against random nodes, with pods that end and a restart in between."""
    lot = random.Random(7)
    nodes = [[card(f"n{i}", c, lot.choice((16, 24, 80)), lot.choice((100, 100, 50)))
              for c in range(lot.randint(1, 4))] for i in range(12)]
    with running(*(node(f"n{i}", *cards) for i, cards in enumerate(nodes)),
                 policy=lot.choice(("fragmentation",))) as it:
        placed, refused = [], 0
        for number in range(200):
            some = [container(f"c{c}", lot.choice((1, 4, 8, 16, 30)), lot.choice((0, 10, 25, 60)))
                    for c in range(lot.choice((1, 1, 1, 2, 3)))]
            init = [container("i", lot.choice((2, 12)))] if lot.random() < 0.2 else []
            each = pod(f"p{number}", containers=some, init=init,
                       policy=lot.choice((None, "bin-packing", "high-performance")))
            name, where = it.schedule(each)
            if name:
                placed.append((each, where))
            else:
                refused += 1
            if number % 9 == 8 and placed:
                gone, _ = placed.pop(lot.randrange(len(placed)))
                it.api.objects.delete("pods", f"team/{gone['metadata']['name']}")
            if number == 100:
                it.kill()
                it.start()
        assert refused and len(placed) > 40
        for kind in (MEMORY, COMPUTE):
            left = {c["id"]: c["memory" if kind == MEMORY else "compute"]
                    for cards in nodes for c in cards}
            for each, where in placed:
                for some in each["spec"]["containers"]:  # init containers come on top, see above
                    left[where.get(some["name"])] = left.get(where.get(some["name"]), 10**6) - int(
                        some["resources"]["limits"].get(kind, 0))
            assert min(left.values()) >= 0, left
