# SPDX-License-Identifier: Apache-2.0
"""The device plugin with real kubelets: what pods get, and what outlives whom."""

import pytest

from cluster import wait_for
from gpu import LIBRARY
from kube_api import container
from kube_gpu import CARD_GIB, KNOWN, MEMORY, ROOM, card_of, devices_of, slice_of

pytestmark = pytest.mark.timeout(3600)  # the first one builds a Kubernetes
STAYS = "sleep 600"


def options_of_mounts(text):
    """{path: options} of lines of mountinfo."""
    return {line.split()[4]: line.split()[5].split(",") for line in text.splitlines()}


def test_a_pod_gets_its_part_of_one_card(pods, gpus):
    gpu = gpus[0]
    pods.pod("half", container(f"env; echo; cat /proc/self/mountinfo > /tmp/mounts; "
                               f"cat /tmp/mounts; {STAYS}",
                               limits=slice_of(8, 50)), nodeName=gpu.node.name)
    pods.wait_phase("half", "Running")
    ids = devices_of(gpu.node, "half")["main"]
    assert {name: len(some) for name, some in ids.items()} == slice_of(8, 50)
    card = card_of(ids)
    assert card in gpu.cards

    wait_for(lambda: "/run/aliquot" in pods.log("half"), 60, lambda: pods.log("half"))
    env, _, mounts = pods.log("half").partition("\n\n")
    assert f"BACKENDAI_MOCK_CUDA_DEVICES={card}" in env.splitlines()
    mounts = options_of_mounts(mounts)
    for path in ("/opt/kernel/libaliquot-gpu.so", "/etc/ld.so.preload", "/run/aliquot"):
        assert "ro" in mounts[path], mounts
    assert gpu.node.path("/run/aliquot/kubernetes/libaliquot-gpu.so").read_bytes() == \
        LIBRARY.read_bytes()


def test_each_of_three_containers_has_one_card(pods, gpus):
    gpu = gpus[0]
    asked = {"a": slice_of(5, 60), "b": slice_of(5, 50), "c": slice_of(3)}
    pods.pod("three", *(container(STAYS, name, limits=limits) for name, limits in asked.items()),
             nodeName=gpu.node.name)
    pods.wait_phase("three", "Running")
    given = devices_of(gpu.node, "three")
    assert {name: {resource: len(ids) for resource, ids in some.items()}
            for name, some in given.items()} == asked
    assert card_of(given["a"]) != card_of(given["b"])
    card_of(given["c"])
    all_ids = [id for some in given.values() for id in some.get(MEMORY, [])]
    assert len(all_ids) == len(set(all_ids)) == 13


def test_an_init_container_leaves_its_part_to_the_others(pods, gpus):
    gpu = gpus[1]
    said = pods.run("prepared", container("echo trained", limits=slice_of(8, 100)),
                    initContainers=[container("true", "prepare", limits=slice_of(8, 100))],
                    nodeName=gpu.node.name)
    assert said == "trained\n"


def test_more_than_any_card_has_is_refused_and_says_why(pods, gpus):
    name = gpus[0].node.name
    pods.pod("wide", container(STAYS, limits=slice_of(CARD_GIB + 1, 50)), nodeName=name)
    status = pods.wait_phase("wide", "Failed")["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "card" in status["message"], status
    pods.pod("huge", container(STAYS, limits=slice_of(ROOM[MEMORY] + 1)))
    pods.wait_event("huge", "FailedScheduling", f"Insufficient {MEMORY}")


def is_ready(pod):
    return all(each["ready"] for each in pod["status"].get("containerStatuses", [{"ready": False}]))


def running_of(pod):
    return [(each["containerID"], each["restartCount"], sorted(each["state"]))
            for each in pod["status"]["containerStatuses"]]


def test_a_killed_kubelet_finds_the_plugin_and_pods_go_on(pods, gpus):
    gpu = gpus[0]
    pods.pod("stays", container(STAYS, limits=slice_of(8, 50)), nodeName=gpu.node.name)
    before = running_of(pods.wait("stays", is_ready))
    ids = devices_of(gpu.node, "stays")
    kubelet = gpu.node.components["kubelet"]
    kubelet.kill()
    known = gpu.plugin.said().count(KNOWN)
    kubelet.start()
    wait_for(lambda: gpu.plugin.said().count(KNOWN) == known + len(ROOM), 60, gpu.plugin.said)
    gpu.wait_room()
    pods.run("next", container("true", limits=slice_of(8, 60)), nodeName=gpu.node.name)
    assert running_of(pods.get("stays")) == before
    assert devices_of(gpu.node, "stays") == ids


def test_a_killed_plugin_comes_back_and_pods_go_on(pods, gpus):
    gpu = gpus[1]
    pods.pod("stays", container(STAYS, limits=slice_of(8, 50)), nodeName=gpu.node.name)
    before = running_of(pods.wait("stays", is_ready))
    gpu.plugin.kill()
    wait_for(lambda: not gpu.node.allocatable(MEMORY), 60, "the kubelet to see it")
    gpu.plugin.start()
    gpu.wait_room()
    pods.run("next", container("true", limits=slice_of(8, 60)), nodeName=gpu.node.name)
    assert running_of(pods.get("stays")) == before
