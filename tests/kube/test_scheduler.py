# SPDX-License-Identifier: Apache-2.0
"""A real kube-scheduler with our extender, and nodes that are written by hand."""

import pytest

from kube_by_hand import EXTENDER, PODS, ByHand, node, pod
from world import BUILD

pytestmark = pytest.mark.timeout(3600)  # the first one builds a Kubernetes


@pytest.fixture(scope="module")
def cluster():
    with ByHand() as it:
        it.start([node("n", cards=2, memory=32), node("m", cards=1, memory=16)],
                 BUILD / "aliquot-k8s")
        it.add_scheduler("aliquot", extenders=[EXTENDER])
        for name, value in (("low", 1), ("high", 100)):
            it.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value,
                "metadata": {"name": name}})
        yield it
        assert "Sanitizer" not in it.components["extender"].said()


@pytest.fixture(autouse=True)
def empty(cluster):
    yield
    cluster.send("DELETE", f"{PODS}?gracePeriodSeconds=0")
    cluster.wait(lambda: not cluster.send("GET", f"{PODS}?limit=1")["items"])


def make(cluster, *pods):
    for each in pods:
        cluster.send("POST", PODS, each)


def place(cluster, name, *amounts, **spec):
    make(cluster, pod(name, "aliquot", *amounts, **spec))
    cluster.wait(lambda: name in cluster.bound())
    return cluster.bound()[name]


def waits(cluster, name, text):
    cluster.wait(lambda: text in cluster.why(name))


def test_cards_of_containers_and_why_a_pod_waits(cluster):
    """Where the sums of a node do not suffice kube-scheduler says so itself, and does not ask us."""
    make(cluster, pod("large", "aliquot", (33, 10)))
    waits(cluster, "large", "no card has 33 of memory and 10 of compute: largest has 32 and 100")
    assert place(cluster, "small", (8, 20)) == ("m", {"c0": "GPU-m-0"})  # the fullest afterwards
    where, cards = place(cluster, "two", (24, 50), (24, 60))
    assert where == "n" and sorted(cards.values()) == ["GPU-n-0", "GPU-n-1"]
    make(cluster, pod("more", "aliquot", (12, 10)))
    waits(cluster, "more", "no card has 12 of memory and 10 of compute free: best has 8 and")
    cluster.send("DELETE", f"{PODS}/two?gracePeriodSeconds=0")
    # that a pod has left is enough for the books
    cluster.wait(lambda: cluster.touch("n") or "more" in cluster.bound())


def test_preemption_makes_room_on_a_card(cluster):
    """By the sums of the node any two have to go, but one card has to be empty."""
    on_n = {"nodeSelector": {"kubernetes.io/hostname": "n"}}
    for number in range(4):
        place(cluster, f"low{number}", (16, 10), priorityClassName="low",
              terminationGracePeriodSeconds=0, **on_n)
    where, cards = place(cluster, "high", (32, 10), priorityClassName="high")
    assert where == "n"
    left = [each for name, (_, each) in cluster.bound().items() if name != "high"]
    assert 1 <= len(left) <= 2
    assert all(one["c0"] != cards["c0"] for one in left)


def test_the_extender_is_killed_and_goes_on(cluster):
    where, cards = place(cluster, "before", (16, 10), nodeSelector={"kubernetes.io/hostname": "n"})
    component = cluster.components["extender"]
    component.kill()
    make(cluster, pod("meanwhile", "aliquot", (32, 10)))
    waits(cluster, "meanwhile", "9090")  # kube-scheduler says that it is not there
    component.start()
    cluster.wait(lambda: "meanwhile" in cluster.bound())
    assert cluster.bound()["meanwhile"][1] != cards  # what was there before is known
    make(cluster, pod("late", "aliquot", (16, 95), nodeSelector={"kubernetes.io/hostname": "n"}))
    waits(cluster, "late", "best has 16 and 90")
