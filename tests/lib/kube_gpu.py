# SPDX-License-Identifier: Apache-2.0
"""Nodes of a real Kubernetes whose GPUs are simulated, with our plugin."""

import contextlib
import os

import grpc

import containers
from cluster import wait_for
from fake_kubelet import CLASSES, encode
from gpu import Card
from gpu_cluster import CUDA, DEVICE
from kube_api import container, shown
from kubernetes import BRIDGE, PORT
from world import BUILD

MEMORY, COMPUTE = "alnair/vgpu-memory", "alnair/vgpu-compute"
CARDS_OF_NODE, CARD_GIB = 2, 8
ROOM = {MEMORY: CARDS_OF_NODE * CARD_GIB, COMPUTE: CARDS_OF_NODE * 100}
CARDS = """\
simulator = "{simulator}"
simulated_card = "{card}"
unit_mem = 0
unit_proc = 0
"""
CARD = """\
[[devices]]
mother_uuid = "{device}"
model_name = "Simulated GPU"
numa_node = {numa}
subproc_count = 80
memory_size = "{size}G"
"""
SETTINGS = """\
[kubernetes]
url = "{url}"
ca = "{keys}/ca.crt"
token = "{keys}/admin.token"
node = "{node}"
[accelerators]
plugins = ""
mock = "{mock}"
rescan = "0.2s"
"""
KNOWN = "the kubelet knows "  # of the plugin's log, for each resource
IMAGE = "docker.io/aliquot/python:1"  # added by the tests that run programs
# Of the plugin's log, and how often it says so.
READY = {"containers are given their limits at": 1, KNOWN: len(ROOM)}
# Holds 1000 MiB; then tries as many as a line says, and says what came of it.
HOLDS = """
say("holds", alloc(1000), info()[1])
import os
while True:
    try:
        wanted = int(open("/tmp/wanted").read())
        os.unlink("/tmp/wanted")
        say(wanted, alloc(wanted))
    except (OSError, ValueError):
        time.sleep(0.05)
"""


class GpuNode:
    """A node of a cluster, its cards, and the plugin as a program on it."""

    def __init__(self, node, version="12.8", cards=CARDS_OF_NODE):
        self.node = node
        wait_for(lambda: not any(map(node.allocatable, ROOM)), 60, "an earlier plugin to go")
        first = cards * (node.number - 1)
        self.cards = [DEVICE % number for number in range(first, first + cards)]
        self.card = Card(version, within=node.folder, processors=80, memory=f"{CARD_GIB}G",
                         devices=first + cards)
        os.chmod(self.card.folder, 0o755)
        mock = node.folder / "mock.toml"
        mock.write_text(self.mock_text((BUILD / "simgpu" / version).resolve(), self.card.path))
        self.config = node.folder / "k8s.toml"
        self.config.write_text(SETTINGS.format(url=f"https://{BRIDGE}:{PORT}", node=node.name,
                                               keys=node.cluster.keys, mock=mock))

    def mock_text(self, simulator, card):
        """Settings of the mock plugin, with the driver in a folder and the card's file."""
        return CARDS.format(simulator=simulator, card=card) + "".join(
            CARD.format(device=device, numa=number, size=CARD_GIB)
            for number, device in enumerate(self.cards))

    def start(self, role):
        """A role of ours on the node, below the kubelet's cgroups as in a pod: by its own it knows
        where those are."""
        places = [top / self.node.name / "kubepods"
                  for top in containers.tops_of(self.node.cluster.folder)]
        place = next(place for place in places if not (place / "cpuset.cpus").exists()) / role
        place.mkdir(parents=True, exist_ok=True)
        self.node.add(role, "sh", "-c", 'echo $$ > "$0"; exec "$@"', place / "cgroup.procs",
                      BUILD / "aliquot-k8s", "--config", self.config, role)

    def restart_plugin(self, config):
        """In order, with this text of settings, until it serves."""
        self.config.write_text(config)
        assert self.plugin.stop() == 0
        before = [self.plugin.said().count(text) for text in READY]
        self.plugin.start()
        wait_for(lambda: all(self.plugin.said().count(text) >= count + times for count, (text, times)
                             in zip(before, READY.items())), 60, self.plugin.said)
        self.wait_room()

    @contextlib.contextmanager
    def settings(self, more):
        """These besides."""
        plain = self.config.read_text()
        self.restart_plugin(plain + more)
        try:
            yield
        finally:
            self.restart_plugin(plain)

    @property
    def plugin(self):
        return self.node.components["plugin"]

    def wait_room(self, room=None):
        """Until pods may have so much of both resources."""
        wait_for(lambda: all(self.node.allocatable(name) == amount
                             for name, amount in (room or ROOM).items()), 60, self.plugin.said)


def slice_of(memory=None, compute=None):
    """Limits of a container."""
    return {name: amount for name, amount in ((MEMORY, memory), (COMPUTE, compute)) if amount}


# ---- pods that use it ----


def devices_of(node, pod):
    """{container: {resource: ids}}, as the node's kubelet says by PodResources."""
    path = node.path("/var/lib/kubelet/pod-resources/kubelet.sock")
    with grpc.insecure_channel(f"unix:{path}") as channel:
        listing = channel.unary_unary(
            "/v1.PodResourcesLister/List", request_serializer=encode,
            response_deserializer=CLASSES["ListPodResourcesResponse"].FromString)(
                CLASSES["Empty"](), timeout=20)
    known = next(each for each in listing.pod_resources if each.name == pod)
    found = {}
    for each in known.containers:
        ids = found.setdefault(each.name, {})
        for devices in each.devices:  # one entry for each NUMA node
            ids.setdefault(devices.resource_name, []).extend(devices.device_ids)
    return {name: {resource: sorted(some) for resource, some in ids.items()}
            for name, ids in found.items()}


def card_of(ids):
    """The one card of all of a container's ids."""
    cards = {id.rpartition("_")[0] for some in ids.values() for id in some}
    assert len(cards) == 1, ids
    return cards.pop()


def python(program, name="main", **limits):
    return container('exec python3 -c "$MAIN"', name, IMAGE, slice_of(**limits),
                     env=[{"name": "MAIN", "value": CUDA + program}])


def begin(pods, name, **spec):
    """A pod with 2 GiB of a card that has taken 1000 MiB of them."""
    pods.pod(name, python(HOLDS, memory=2, compute=50), **spec)
    wait_for(lambda: "holds" in log_of(pods, name), 60, lambda: shown(pods.get(name)))
    assert log_of(pods, name) == "holds 0 2048\n"


def log_of(pods, name):
    """Or "" before there is one."""
    return pods.log(name) if pods.get(name)["status"].get("phase") != "Pending" else ""


def attempt(kube, pods, name, mib):
    """What a program in the pod gets of so much more."""
    kube.kubectl("exec", "-n", pods.name, name, "--", "sh", "-c",
                 f"echo {mib} > /tmp/new; exec python3 -c 'import os; "
                 "os.rename(\"/tmp/new\", \"/tmp/wanted\")'")
    answer = wait_for(lambda: [line for line in log_of(pods, name).splitlines()
                               if line.startswith(f"{mib} ")], 60, lambda: log_of(pods, name))
    return int(answer[0].split()[1])
