# SPDX-License-Identifier: Apache-2.0
"""A cluster whose agents have simulated GPUs, and programs for containers on them."""

import base64
import contextlib
import os
import re
import subprocess
import zlib

from cluster import Cluster
from gpu import Card
from world import BUILD

SETTINGS = {"ALIQUOT_RESOURCE_CPUS": "4", "ALIQUOT_SESSIONS_KILL_GRACE": "0.5s",
            "ALIQUOT_MANAGER_HEARTBEAT": "0.2s", "ALIQUOT_AGENTS_HEARTBEAT": "1s",
            "ALIQUOT_RUNTIME_DRIVER": "container", "ALIQUOT_RUNTIME_OCI": "crun",
            "ALIQUOT_ACCELERATORS_RESCAN": "0.2s"}
# Of the simulated card's devices; as in document 002, 8 GB that are 2 fGPU.
DEVICE = "GPU-513a5f0e-7721-4b6c-9d10-0000000000%02d"
CARDS = """\
simulator = "{simulator}"
simulated_card = "{card}"
allocation_mode = "fractional"
unit_mem = "{unit_mem}"
unit_proc = 40
"""
CARD = """\
[[devices]]
mother_uuid = "{device}"
model_name = "Simulated GPU"
subproc_count = 80
memory_size = "8G"
"""
CUDA = """\
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def must(result): assert result == 0, result
def use(ordinal):
    context, device = ctypes.c_void_p(), ctypes.c_int()
    must(cuda.cuDeviceGet(ctypes.byref(device), ordinal))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    must(cuda.cuCtxSetCurrent(context))
def start():
    must(cuda.cuInit(0))
    use(0)
def info():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    must(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    return free.value >> 20, total.value >> 20
def alloc(mib):
    return cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20))
def say(*words): print(*words, flush=True)
start()
"""
# Runs tests/gpu/bypass.c, which comes with the request: containers see nothing of the
# checkout where it lies below /home or /tmp.
CHEAT = """
import base64, os, subprocess, zlib
def cheat(way):
    path = "/home/work/gpu-bypass"
    with open(path, "wb") as file:
        file.write(zlib.decompress(base64.b64decode(os.environ["BYPASS"])))
    os.chmod(path, 0o755)
    return subprocess.run([path, way], capture_output=True, text=True)
"""
# Has its part, and takes memory by the driver's own function, found where its library lies.
BEHIND = """
must(alloc(500))
start = ctypes.c_size_t.from_address(cuda._handle).value
behind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(start + {offset})
must(behind(ctypes.byref(ctypes.c_uint64()), {mib} << 20))
say("holds")
time.sleep(600)
"""


def behind(mib, version="12.8"):
    """A program that has started, and goes on so."""
    symbols = subprocess.run(["nm", "-D", BUILD / "simgpu" / version / "libcuda.so.1"], check=True,
                             capture_output=True, text=True).stdout
    offset = int(re.search(r"^(\w+) T cuMemAlloc_v2$", symbols, re.M)[1], 16)
    return BEHIND.format(offset=offset, mib=mib)


class GpuCluster(Cluster):
    """Agents of containers, whose GPUs are simulated: one with all of them, unless the test
    starts others on mocks of their own."""

    def __init__(self, version="12.8", devices=1, **settings):
        super().__init__(**{**SETTINGS, **settings})
        self.version, self.devices = version, range(devices)
        self.card = Card(processors=80, memory="8G", devices=devices)
        self.mock = self.folder / "mock-accelerator.toml"
        self.env["ALIQUOT_ACCELERATORS_MOCK"] = str(self.mock)
        os.chmod(self.card.folder, 0o755)
        self.write_cards("4G")

    def write_cards(self, unit_mem, mock=None, devices=None):
        fresh = self.folder / "cards.new"
        text = CARDS.format(simulator=(BUILD / "simgpu" / self.version).resolve(),
                            card=self.card.path, unit_mem=unit_mem)
        fresh.write_text(text + "".join(CARD.format(device=DEVICE % number)
                                        for number in devices or self.devices))
        fresh.rename(mock or self.mock)

    def start_gpu_agent(self, name, device, **settings):
        """An agent with this one of the devices alone."""
        mock = self.folder / (name + ".toml")
        self.write_cards("4G", mock, [device])
        self.start_agent(name, ALIQUOT_ACCELERATORS_MOCK=str(mock), **settings)

    def end(self):
        super().end()
        self.card.close()


def body_of(amount, program, **more):
    """The request for a container with a part of the GPU that runs a program of Python."""
    return {"config": {"resources": {"cpu": "1", "mem": "256m", "cuda.shares": amount},
                       "environ": {"CUDA": CUDA, "MAIN": CUDA + program}}, **more}


def cheat_body_of(amount, program):
    """The same for a program that may call cheat(way), and gets memory past the library by it."""
    body = body_of(amount, CHEAT + program)
    bypass = (BUILD / "tests" / "gpu" / "gpu-bypass").read_bytes()
    body["config"]["environ"]["BYPASS"] = base64.b64encode(zlib.compress(bypass)).decode()
    return body


@contextlib.contextmanager
def started_cluster(**settings):
    """For the tests of a module: a manager and an agent, after which nothing may be left."""
    with GpuCluster(**settings) as made:
        made.start_manager()
        made.start_agent()
        yield made
        made.check_nothing_left()
        made.check_audits()
        made.stop()
