# SPDX-License-Identifier: Apache-2.0
"""Pods that come and go quickly: scheduler and plugin with a kubelet and an API server that are made
up. Each container lies on the card that it was promised, and none is rejected."""

import contextlib
import http.client
import json
import os
import random
import subprocess
import threading
import time
import uuid

import pytest

from admitting_kubelet import AdmittingKubelet
from fake_api_server import Refused
from kube_node import COMPUTE, MEMORY, KubeNode, wait_for
from ports import free_ports
from world import BUILD

ROUNDS = int(os.environ.get("ALIQUOT_TEST_SCALINGS", "40"))
CARDS = 4


def container(name, memory=0, compute=0):
    limits = {kind: str(units) for kind, units in ((MEMORY, memory), (COMPUTE, compute)) if units}
    return {"name": name, "image": "i", "resources": {"limits": limits}}


class Cluster(KubeNode):
    """One node of four cards of 8 GiB, and a kube-scheduler of few words."""

    def __init__(self, seed=1):
        self.port = free_ports(1)
        super().__init__(devices=CARDS, config=f"""\
[scheduler]
listen = "127.0.0.1:{self.port}"
metrics = "off"
[webhook]
listen = "off"
[metrics]
listen = "off"
""")
        self.kubelet = AdmittingKubelet(self.kubelet_folder, self.api, seed=seed)
        self.random = random.Random(seed)
        self.is_ending, self.count = threading.Event(), 0

    def begin_all(self):
        super().begin_all()
        self.kubelet.wait(2)
        self.start("scheduler", ready="all is known")
        wait_for(lambda: "aliquot/cards" in self.annotations, self.said)
        self.kubelet.begin()
        self.scheduler = threading.Thread(target=self.schedule, daemon=True)
        self.scheduler.start()
        return self

    def ask(self, verb, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("POST", f"/{verb}", json.dumps(body),
                               {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def schedule_one(self, pod):
        meta = pod["metadata"]
        names = self.ask("filter", {"Pod": pod, "Nodes": None, "NodeNames": ["n1"]})["NodeNames"]
        for name in names or []:
            self.ask("bind", {"PodName": meta["name"], "PodUID": meta["uid"],
                              "PodNamespace": meta["namespace"], "Node": name})

    def schedule(self):
        while not self.is_ending.is_set():
            for pod in self.pods():
                if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]:
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        self.schedule_one(pod)
            time.sleep(0.01)

    def pods(self, **status):
        return [pod for pod in self.api.objects.all("pods")
                if all(pod["status"].get(key) == value for key, value in status.items())]

    def add(self, *containers, init=()):
        self.count += 1
        self.api.objects.put("pods", {
            "metadata": {"name": f"p{self.count}", "namespace": "default", "uid": str(uuid.uuid4()),
                         "creationTimestamp": f"2026-11-01T00:00:{time.time_ns() // 10**9 % 60:02}Z"},
            "spec": {"containers": list(containers), "initContainers": list(init)},
            "status": {"phase": "Pending"}})

    def remove(self, pod, is_forced=False):
        key = self.api.objects.key(pod)
        with contextlib.suppress(Refused, KeyError), self.api.objects.changed:
            known = self.api.objects.get("pods", key)
            if is_forced or not known["spec"].get("nodeName"):
                self.api.objects.delete("pods", key)
            else:
                self.api.objects.patch("pods", key,
                                       {"metadata": {"deletionTimestamp": "2026-11-01T00:00:00Z"}})

    def restart(self, role):
        """Killed, and started again; no pod is admitted meanwhile."""
        with self.kubelet.admission:
            known = len(self.kubelet.registered)
            self.kill(role)
            self.start(role, ready={"scheduler": "all is known"}.get(role))
            if role == "plugin":
                self.kubelet.wait(known + 2)

    def wait_phase(self, phase, count):
        wait_for(lambda: self.kubelet.rejected or len(self.pods(phase=phase)) == count,
                 lambda: f"{self.pods()}\n{self.said()[-3000:]}")
        self.check()

    def check(self):
        """No pod is rejected, no card has given more than it has, each is where it was promised."""
        assert not self.kubelet.rejected, f"{self.kubelet.rejected}\n{self.said()[-3000:]}"
        with self.kubelet.lock:
            known = dict(self.kubelet.known)
            given = {key: dict(ids) for key, ids in self.kubelet.given.items() if key[0] in known}
        for (uid, name), resources in given.items():
            cards = {id.rpartition("_")[0] for ids in resources.values() for id in ids}
            promised = json.loads(known[uid]["metadata"]["annotations"]["aliquot/placement"])
            assert cards == {promised[name]}, (name, cards, promised)

    def end(self):
        self.is_ending.set()
        self.scheduler.join(30)
        super().end()


@contextlib.contextmanager
def cluster(**settings):
    with Cluster(**settings) as made:
        made.begin_all()
        yield made
        made.check()
        made.stop()


@pytest.mark.timeout(60 + 4 * ROUNDS)
def test_pods_of_a_deployment_that_is_scaled_quickly_are_all_admitted():
    with cluster() as it:
        for _ in range(ROUNDS):
            for _ in range(6):
                it.add(container("main", 5, 50))
            if it.random.random() < 0.5:
                it.wait_phase("Running", CARDS)
            else:
                time.sleep(it.random.uniform(0, 0.2))
            for pod in it.pods():
                it.remove(pod)
            it.check()
        wait_for(lambda: not it.pods(), "the last to go")
        assert it.kubelet.admitted > ROUNDS // 2


KINDS = [
    lambda it: it.add(container("main", 5, 50)),
    lambda it: it.add(container("main", 5, 20)),
    lambda it: it.add(container("main", 3)),
    lambda it: it.add(container("a", 3, 30), container("b", 2, 40), container("c", 2)),
    lambda it: it.add(container("main", 2, 30), init=[container("before", 4, 40)]),
    lambda it: it.add(container("main", 4, 40), init=[container("before", 1, 60)]),
]


def end_some(it):
    """In one of the ways in which pods end; those that have run hold nothing more."""
    pods = it.pods()
    for pod in it.random.sample(pods, len(pods) // 2):
        how = it.random.randrange(3)
        if how == 0 and pod["status"].get("phase") == "Running":
            it.kubelet.end_pod(pod, "Succeeded")
        else:
            it.remove(pod, is_forced=how == 1)


@pytest.mark.timeout(120 + 4 * ROUNDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_pods_of_all_kinds_and_programs_that_are_killed(seed):
    with cluster(seed=seed) as it:
        for number in range(ROUNDS):
            for _ in range(it.random.randrange(1, 5)):
                it.random.choice(KINDS)(it)
            time.sleep(it.random.uniform(0, 0.2))
            end_some(it)
            if number % 10 == 9:
                it.restart("plugin")
            if number % 10 == 4:
                it.restart("scheduler")
            it.check()
        for pod in it.pods():
            it.remove(pod)
        wait_for(lambda: not it.pods(), "the last to go")
        assert it.kubelet.admitted > ROUNDS // 2
