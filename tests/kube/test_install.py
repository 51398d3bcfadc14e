# SPDX-License-Identifier: Apache-2.0
"""Installed by helm, with the rights that the chart gives: pods get parts of the cards that the
scheduler chose, a waiting one says why, roles are replaced under load, and nothing stays."""

import json
import shutil
import subprocess

import pytest

from cluster import wait_for
from kube_api import BASE, Refused, container
from kube_gpu import ROOM, GpuNode, attempt, begin, card_of, devices_of, python, slice_of
from kube_programs import base_layer, scheduler_layer
from world import BUILD, ROOT

# the first one builds a Kubernetes
pytestmark = [pytest.mark.timeout(3600), pytest.mark.usefixtures("python_image")]
SPACE, RUN = "aliquot-system", "/run/aliquot/kubernetes"
SCHEDULER = "docker.io/aliquot/installed-scheduler:1"
OWN_SETTINGS = "configmap/aliquot-settings"  # of the user, as are these
SETTINGS = f"""\
[accelerators]
plugins = ""
mock = "{RUN}/simgpu/mock.toml"
rescan = "0.2s"
"""


def put_cards(node):
    """The simulated cards lie where the plugin's pod and the node see them by one path."""
    gpu = GpuNode(node)
    place = node.path(f"{RUN}/simgpu")
    place.mkdir(parents=True)
    shutil.copy(gpu.card.path, place / "device")
    (place / "device").chmod(0o666)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        shutil.copy(BUILD / "simgpu" / "12.8" / name, place)
    (place / "mock.toml").write_text(gpu.mock_text(f"{RUN}/simgpu", f"{RUN}/simgpu/device"))
    gpu.card.close()


@pytest.fixture(scope="module")
def installed(kube):
    for node in kube.nodes:
        put_cards(node)
    packed = kube.folder / "aliquot-k8s.tar"
    subprocess.run([ROOT / "tools/make-kube-image", "--build", BUILD, "--out", packed], check=True,
                   stdout=subprocess.DEVNULL)
    kube.add_packed_image("aliquot-k8s", packed.read_bytes())
    kube.add_image(SCHEDULER, [base_layer(), scheduler_layer()])
    kube.api().apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
                     {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k8s.toml": SETTINGS},
                      "metadata": {"name": "aliquot-settings", "namespace": SPACE}})
    done = kube.helm("install", "aliquot", ROOT / "packaging/helm/aliquot", "-n", SPACE, "--set",
                     f"schedulerImage={SCHEDULER}", "--wait", "--timeout", "60s", check=False)
    assert done.returncode == 0, done.stdout + done.stderr + story(kube)
    for node in kube.nodes:
        wait_for(lambda: all(node.allocatable(name) == amount for name, amount in ROOM.items()),
                 60, lambda: story(kube))
    yield
    kube.helm("uninstall", "aliquot", "-n", SPACE, "--ignore-not-found")


def story(kube):
    """What a failed test says of all that is installed."""
    done = kube.kubectl("get", "pods,events", "-n", SPACE, "-o", "wide")
    for role in ("plugin", "keep", "scheduler"):
        done += kube.kubectl("logs", "-n", SPACE, "-l", f"app.kubernetes.io/name=aliquot-{role}",
                             "--all-containers", "--tail=15", "--prefix", check=False).stdout
    return done


def test_pods_get_what_the_scheduler_chose(kube, pods, installed):
    asked = {"a": slice_of(5, 60), "b": slice_of(5, 40), "c": slice_of(3)}
    pods.pod("three", *(container("sleep 600", name, limits=limits)
                        for name, limits in asked.items()))
    pod = pods.wait_phase("three", "Running")
    assert pod["spec"]["schedulerName"] == "aliquot"
    placement = json.loads(pod["metadata"]["annotations"]["aliquot/placement"])
    node = next(node for node in kube.nodes if node.name == pod["spec"]["nodeName"])
    given = devices_of(node, "three")
    assert {name: card_of(ids) for name, ids in given.items()} == placement
    assert {name: {resource: len(ids) for resource, ids in some.items()}
            for name, some in given.items()} == asked


def test_a_program_sees_its_part(pods, installed):
    said = pods.run("part", python("say(info()[1], alloc(2000), alloc(1500))", memory=3,
                                   compute=50))
    assert said == "3072 0 2\n"


def test_a_waiting_pod_says_what_is_short(pods, installed):
    pods.pod("wide", container("sleep 600", limits=slice_of(9, 10)))
    said = pods.wait_event("wide", "FailedScheduling")
    assert "card" in said, said


def test_rights_of_the_node_are_refused_when_a_pod_is_made_and_debugged(kube, pods, installed):
    ptrace = {"securityContext": {"capabilities": {"add": ["sys_ptrace"]}}}
    with pytest.raises(Refused, match="capabilities.add has 'sys_ptrace'"):
        pods.pod("traces", {**container("sleep 600", limits=slice_of(1)), **ptrace})
    pods.pod("part", container("sleep 600", "main", limits=slice_of(1)))
    pods.wait_phase("part", "Running")

    def debug(profile):
        return kube.kubectl("debug", "part", "-n", pods.name, f"--image={BASE}", "--target=main",
                            f"--profile={profile}", "--", "true", check=False)
    for profile in ("general", "sysadmin"):
        done = debug(profile)
        assert done.returncode and "kubectl debug --profile=baseline" in done.stderr, done
    done = debug("baseline")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("role", ["daemonset/aliquot-plugin", "deployment/aliquot-scheduler"])
def test_a_rollout_under_load_leaves_limits_in_place(kube, pods, installed, role):
    begin(pods, "holds")
    kube.kubectl("rollout", "restart", "-n", SPACE, role)
    assert attempt(kube, pods, "holds", 1500) == 2
    kube.kubectl("rollout", "status", "-n", SPACE, role, "--timeout=100s")
    assert attempt(kube, pods, "holds", 1501) == 2
    assert attempt(kube, pods, "holds", 500) == 0
    assert pods.run("next", python("say(info()[1])", memory=1, compute=10)) == "1024\n"


def left(kube):
    """Objects of ours, in the cluster and in our namespace, and annotations of nodes."""
    names = kube.kubectl(
        "get", "clusterroles,clusterrolebindings,mutatingwebhookconfigurations", "-o", "name")
    names += kube.kubectl(
        "get", "all,leases,secrets,configmaps,serviceaccounts,roles,rolebindings", "-n", SPACE,
        "-o", "name")
    return ([name for name in names.split() if "/aliquot" in name and name != OWN_SETTINGS]
            + annotated(kube))


def annotated(kube):
    """Nodes of which it is written what cards they have."""
    return [node["metadata"]["name"] for node in kube.api().list("v1/Node")
            if "aliquot/cards" in node["metadata"].get("annotations", {})]


def test_what_is_uninstalled_leaves_nothing(kube, installed):
    assert len(annotated(kube)) == len(kube.nodes)
    kube.helm("uninstall", "aliquot", "-n", SPACE, "--wait")
    assert not annotated(kube)
    wait_for(lambda: not left(kube), 60, lambda: left(kube))


def test_manifests_are_applied_and_deleted(kube, pods, installed):
    """As the first line of the manual has it, without helm."""
    kube.helm("uninstall", "aliquot", "-n", SPACE, "--ignore-not-found", "--wait")
    objects = subprocess.run([BUILD / "aliquot-k8s", "manifests", "--set",
                              f"schedulerImage={SCHEDULER}"], check=True, capture_output=True,
                             text=True).stdout
    kube.kubectl("apply", "-f", "-", says=objects)
    for role in ("daemonset/aliquot-plugin", "deployment/aliquot-scheduler"):
        kube.kubectl("rollout", "status", "-n", SPACE, role, "--timeout=100s")
    wait_for(lambda: is_believed(kube), 60, lambda: story(kube))
    assert pods.run("part", python("say(info()[1], alloc(1500), alloc(700))", memory=2,
                                   compute=50)) == "2048 0 2\n"
    kube.kubectl("delete", "--wait", "-f", "-", says=objects)
    kube.kubectl("annotate", "nodes", "--all", "aliquot/cards-")
    assert not left(kube)


def is_believed(kube):
    """The API server knows the authority of the webhook, and nodes have what they offer."""
    webhook = json.loads(kube.kubectl("get", "mutatingwebhookconfiguration/aliquot", "-o", "json"))
    return (webhook["webhooks"][0]["clientConfig"].get("caBundle")
            and all(node.allocatable(name) == amount for node in kube.nodes
                    for name, amount in ROOM.items()))
