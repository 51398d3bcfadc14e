# SPDX-License-Identifier: Apache-2.0
"""Nodes of a real Kubernetes whose GPUs are simulated, with our plugin."""

import os

import containers
from cluster import wait_for
from gpu import Card
from gpu_cluster import DEVICE
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


class GpuNode:
    """A node of a cluster, its cards, and the plugin as a program on it."""

    def __init__(self, node, version="12.8"):
        self.node = node
        first = CARDS_OF_NODE * (node.number - 1)
        self.cards = [DEVICE % number for number in range(first, first + CARDS_OF_NODE)]
        self.card = Card(version, within=node.folder, processors=80, memory=f"{CARD_GIB}G",
                         devices=first + CARDS_OF_NODE)
        os.chmod(self.card.folder, 0o755)
        mock = node.folder / "mock.toml"
        mock.write_text(CARDS.format(simulator=(BUILD / "simgpu" / version).resolve(),
                                     card=self.card.path)
                        + "".join(CARD.format(device=device, numa=number, size=CARD_GIB)
                                  for number, device in enumerate(self.cards)))
        self.config = node.folder / "k8s.toml"
        self.config.write_text(SETTINGS.format(url=f"https://{BRIDGE}:{PORT}", node=node.name,
                                               keys=node.cluster.keys, mock=mock))

    def start(self, role):
        """A role of ours on the node, below the kubelet's cgroups as in a pod: by its own it knows
        where those are."""
        places = [top / self.node.name / "kubepods"
                  for top in containers.tops_of(self.node.cluster.folder)]
        place = next(place for place in places if not (place / "cpuset.cpus").exists()) / role
        place.mkdir(parents=True, exist_ok=True)
        self.node.add(role, "sh", "-c", 'echo $$ > "$0"; exec "$@"', place / "cgroup.procs",
                      BUILD / "aliquot-k8s", "--config", self.config, role)

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
