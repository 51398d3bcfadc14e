# SPDX-License-Identifier: Apache-2.0
"""A cluster whose nodes have simulated GPUs and folders, with the proxy and a web server, as the
console needs it."""

import contextlib
import os
import subprocess
import threading

from cluster import wait_for
from client import USER
from gpu import Card
from gpu_cluster import CARD, CARDS, DEVICE
from images import Layout, LooseRegistry, archive, file, folder, programs
from ports import free_port
from python_image import python_layer
from runtimes import settings_of
from test_proxy import Proxied
from web import Webbed
from world import BUILD

PROGRAMS = ("bash", "sh", "sleep", "cat", "env", "seq", "printf", "stty", "id")
HOST = "local:volume1"
# What the container's first GPU says of its memory, as the real one does.
NVIDIA_SMI = b"""#!/usr/bin/python3
import ctypes
class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, name, memory = ctypes.c_void_p(), ctypes.create_string_buffer(96), Memory()
assert nvml.nvmlInit_v2() == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetName(device, name, 96) == 0
assert nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
print(f"| 0  {name.value.decode()} | {memory.used >> 20}MiB / {memory.total >> 20}MiB |")
"""


class SlowRegistry(LooseRegistry):
    """Most of a large layer, by and by, and the rest when 'may_go_on' is set."""

    def __init__(self, layout):
        super().__init__(layout)
        self.may_go_on = threading.Event()

    def write(self, request, data):
        size = len(data) // 10 if len(data) > 1 << 20 else len(data)
        with contextlib.suppress(ConnectionError):
            for at in range(0, len(data), size):
                request.wfile.write(data[at:at + size])
                if size < len(data):
                    self.may_go_on.wait(120 if at > 7 * size else 0.3)


class ConsoleCluster(Proxied, Webbed):
    def __init__(self, **settings):
        super().__init__(**{**settings_of("crun"), "ALIQUOT_IMAGE_ALLOW": "* oci:/",
                            "ALIQUOT_IMAGE_KEEP_FREE": "0", "ALIQUOT_RESOURCE_CPUS": "8",
                            **settings})
        self.cards = []
        self.layout = Layout(self.folder / "layout")
        self.registry = SlowRegistry(self.layout)
        self.env["ALIQUOT_IMAGE_INSECURE"] = self.registry.address

    def start(self, nodes=1, cards=1):
        self.start_manager()
        self.volume = self.folder / "volume1"
        self.volume.mkdir(mode=0o700)
        for node in range(1, nodes + 1):
            self.start_node(f"node{node}", cards)
        self.start_storage()
        self.start_proxy(ALIQUOT_PROXY_DOMAIN="localhost")
        self.start_web()
        self.layout.image("shell", [archive([*programs(*PROGRAMS), folder("tmp", mode=0o1777)])])
        self.layout.image("python", [python_layer(), archive([
            file("usr/bin/nvidia-smi", NVIDIA_SMI, mode=0o755), folder("tmp", mode=0o1777)])])
        for name in ("shell", "python", "lab"):
            self.alias(name, name)

    def start_node(self, name, cards=1):
        """Each card has 8 GB that are 2 fGPU, as in document 002."""
        card = Card(processors=80, memory="8G", devices=cards)
        self.cards.append(card)
        os.chmod(card.folder, 0o755)
        mock = self.folder / f"{name}.toml"
        mock.write_text(CARDS.format(simulator=(BUILD / "simgpu" / "12.8").resolve(), card=card.path,
                                     unit_mem="4G")
                        + "".join(CARD.format(device=DEVICE % i) for i in range(cards)))
        os.chmod(mock, 0o644)
        self.start_agent(name, ALIQUOT_ACCELERATORS_MOCK=str(mock),
                         ALIQUOT_FOLDERS_VOLUMES=f"{HOST}={self.volume}")

    def start_storage(self):
        state = self.folder / "storage"
        token = self.client().post("/aliquot/v1/join-tokens", {"storage": "local"}).json["token"]
        done = self.run("aliquot-storage", "--state", state, "join", self.link, token)
        assert done.returncode == 0, done.stderr
        self.start_program("storage", BUILD / "aliquot-storage", "--state", state, "--listen",
                           f"127.0.0.1:{free_port()}",
                           ALIQUOT_STORAGE_VOLUMES=f"volume1:{self.volume}")
        wait_for(lambda: HOST in self.client().get("/folders/_/hosts").body.decode(), 60, "its volume")

    def alias(self, name, image):
        reply = self.client().send("PUT", f"/aliquot/v1/image-aliases/{name}",
                                   {"image": self.layout.reference(image)})
        assert reply.status == 204, reply

    def type(self, command, keypair=USER):
        """What a shell says to a command that somebody has copied."""
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120,
                              env={**self.env, **self.cli_env(keypair),
                                   "PATH": f"{BUILD}:{os.environ['PATH']}"})
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def end(self):
        super().end()
        self.registry.may_go_on.set()
        self.registry.stop()
        for card in self.cards:
            card.close()
