"""A cluster whose agent has a simulated GPU, and programs for containers on it."""

import os

from cluster import BUILD, Cluster
from gpu import Card

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
def start():
    context = ctypes.c_void_p()
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
def info():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    must(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    return free.value >> 20, total.value >> 20
def alloc(mib):
    return cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(mib << 20))
def say(*words): print(*words, flush=True)
start()
"""


class GpuCluster(Cluster):
    """One agent of containers, whose card is simulated."""

    def __init__(self, version="12.8", **settings):
        super().__init__(**{**SETTINGS, **settings})
        self.version = version
        self.card = Card(processors=80, memory="8G")
        self.mock = self.folder / "mock-accelerator.toml"
        self.env["ALIQUOT_ACCELERATORS_MOCK"] = str(self.mock)
        os.chmod(self.card.folder, 0o755)
        self.write_cards("4G")

    def write_cards(self, unit_mem):
        fresh = self.folder / "cards.new"
        fresh.write_text(CARDS.format(simulator=(BUILD / "simgpu" / self.version).resolve(),
                                      card=self.card.path, device=DEVICE % 0, unit_mem=unit_mem))
        fresh.rename(self.mock)

    def end(self):
        super().end()
        self.card.close()


def body_of(amount, program, **more):
    """The request for a container with a part of the GPU that runs a program of Python."""
    return {"config": {"resources": {"cpu": "1", "mem": "256m", "cuda.shares": amount},
                       "environ": {"CUDA": CUDA, "MAIN": CUDA + program}}, **more}
