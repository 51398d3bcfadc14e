# SPDX-License-Identifier: Apache-2.0
"""A Deployment that is scaled quickly, on one node of four cards, with our extender: each pod lies on
the card that it was promised, and none is rejected."""

import json
import os
import random
import time

import pytest

from cluster import wait_for
from kube_api import container, shown
from kube_by_hand import EXTENDER
from kube_gpu import COMPUTE, KNOWN, MEMORY, GpuNode, card_of, devices_of, slice_of
from kubernetes import BRIDGE, PORT, Kubernetes
from world import BUILD

ROUNDS = int(os.environ.get("ALIQUOT_TEST_SCALINGS", "20"))
CARDS, REPLICAS, ROUND_SECONDS = 4, 6, 1.5
ROOM = {MEMORY: CARDS * 8, COMPUTE: CARDS * 100}
DEPLOYMENT, POD = "apps/v1/Deployment", "v1/Pod"

pytestmark = pytest.mark.timeout(3600 + 4 * ROUNDS)  # the first one builds a Kubernetes


@pytest.fixture(scope="module")
def gpu():
    with Kubernetes(scheduler={"extenders": [EXTENDER]}) as made:
        made.start(nodes=1)
        config = made.folder / "k8s.toml"
        config.write_text(f"""\
[kubernetes]
url = "https://{BRIDGE}:{PORT}"
token = "{made.keys}/admin.token"
ca = "{made.keys}/ca.crt"
[scheduler]
metrics = "off"
[webhook]
listen = "off"
""")
        gpu = GpuNode(made.nodes[0], cards=CARDS)
        made.add("extender", BUILD / "aliquot-k8s", "--config", config, "scheduler")
        for role in ("keep", "plugin"):
            gpu.start(role)
        gpu.wait_room(ROOM)
        yield gpu
        for program in (made.components["extender"], gpu.plugin, gpu.node.components["keep"]):
            assert program.stop() == 0 and "Sanitizer" not in program.said(), program.said()
        gpu.card.close()


@pytest.fixture
def kube(gpu):
    return gpu.node.cluster


class Scaled:
    """A Deployment whose pods have these containers."""

    def __init__(self, pods, name, *containers, **spec):
        self.pods, self.name = pods, name
        labels = {"app": name}
        pods.apply(DEPLOYMENT, name, spec={"replicas": 0, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {
                "containers": list(containers), "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": False, "enableServiceLinks": False, **spec}}})

    def scale(self, replicas):
        self.pods.api.patch(DEPLOYMENT, self.name, {"spec": {"replicas": replicas}}, self.pods.name)

    def all(self):
        return self.pods.api.list(POD, self.pods.name, labelSelector=f"app={self.name}")

    def running(self):
        return [pod for pod in self.all() if pod["status"].get("phase") == "Running"
                and "deletionTimestamp" not in pod["metadata"]]


@pytest.fixture
def deploy(pods):
    """Makes Deployments that go before their pods."""
    made = []
    yield lambda *words, **spec: made.append(Scaled(pods, *words, **spec)) or made[-1]
    for each in made:
        pods.api.delete(DEPLOYMENT, each.name, pods.name)
    wait_for(lambda: not any(each.all() for each in made), 120, "the pods of Deployments to go")


# A kubelet's words for a plugin that was killed while it was asked, or has not come back.
AWAY = ("code = Unavailable", "no healthy devices present")


def rejected(pods, allowed):
    """{pod: why} of those that have failed otherwise than by their programs, or for an allowed reason."""
    return {pod["metadata"]["name"]: pod["status"].get("message", shown(pod))
            for pod in pods.api.list(POD, pods.name)
            if pod["status"].get("phase") == "Failed" and "reason" in pod["status"]
            and not any(text in pod["status"].get("message", "") for text in allowed)}


def check_promises(gpu, pods):
    """What runs is where the scheduler wanted it."""
    for pod in pods:
        promised = json.loads(pod["metadata"]["annotations"]["aliquot/placement"])
        for name, ids in devices_of(gpu.node, pod["metadata"]["name"]).items():
            assert card_of(ids) == promised[name]


def rounds(pods, scaled, between=lambda number: None, allowed=()):
    """Scale all of them down and up again; no pod may fail."""
    draw = random.Random(1)
    for number in range(ROUNDS):
        begun = time.monotonic()
        for each in scaled:
            each.scale(0)
        time.sleep(draw.uniform(0, ROUND_SECONDS / 2))
        between(number)
        for each in scaled:
            each.scale(REPLICAS)
        time.sleep(max(0, begun + ROUND_SECONDS - time.monotonic()))
        refused = rejected(pods, allowed)
        assert not refused, f"round {number}: {refused}"


def test_a_deployment_is_scaled_quickly(gpu, pods, deploy):
    scaled = deploy("half", container("sleep 600", limits=slice_of(5, 50)))
    rounds(pods, [scaled])
    wait_for(lambda: len(scaled.running()) == CARDS, 60, lambda: [shown(pod) for pod in scaled.all()])
    check_promises(gpu, scaled.running())


def test_programs_are_killed_while_deployments_are_scaled(gpu, kube, pods, deploy):
    """Of pods that have several containers, or one that runs before. A kubelet rejects pods that come
    while it has no plugin, so they come after it knows ours again."""
    scaled = [
        deploy("two", container("sleep 600", "a", limits=slice_of(3, 20)),
               container("sleep 600", "b", limits=slice_of(2, 40))),
        deploy("prepared", container("sleep 600", limits=slice_of(2, 30)),
               initContainers=[container("true", "before", limits=slice_of(4, 60))]),
        deploy("alone", container("sleep 600", limits=slice_of(3)))]

    def kill(number):
        victims = {4: kube.components["extender"], 9: gpu.plugin}
        if not (program := victims.get(number % 10)):
            return
        known = gpu.plugin.said().count(KNOWN)
        program.kill()
        program.start()
        if program is not victims[4]:
            wait_for(lambda: gpu.plugin.said().count(KNOWN) == known + 2, 60, gpu.plugin.said)
            gpu.wait_room(ROOM)
    rounds(pods, scaled, kill, AWAY)
    wait_for(lambda: sum(len(each.running()) for each in scaled) >= CARDS, 60, "pods that run")
    check_promises(gpu, sum((each.running() for each in scaled), []))
