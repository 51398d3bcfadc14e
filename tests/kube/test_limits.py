# SPDX-License-Identifier: Apache-2.0
"""Programs in pods see their part of a card and get no more, whatever is replaced meanwhile."""

import base64
import zlib

import pytest

from gpu_cluster import CHEAT, CUDA, behind
from kube_api import PODS
from kube_gpu import attempt, begin, python
from world import BUILD

# the first one builds a Kubernetes
pytestmark = [pytest.mark.timeout(3600), pytest.mark.usefixtures("python_image")]
NVML = """
nvml = ctypes.CDLL("libnvidia-ml.so.1")
def total_by_nvml():
    device, memory = ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
    must(nvml.nvmlInit_v2())
    must(nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
    must(nvml.nvmlDeviceGetMemoryInfo(device, memory))
    return memory[0] >> 20
"""


def test_a_program_sees_its_part_and_is_refused_more(pods, gpus):
    said = pods.run("part", python(NVML + """
say(info()[1], total_by_nvml())
say(alloc(2000), alloc(1500))
""", memory=3, compute=50), nodeName=gpus[0].node.name)
    assert said.splitlines() == ["3072 3072", "0 2"]


def test_each_container_of_a_pod_has_its_own(pods, gpus):
    sizes = {"a": 1, "b": 2, "c": 4}
    pods.pod("three", *(python("say(info()[1], alloc(info()[1] + 1))", name, memory=size)
                        for name, size in sizes.items()),
             initContainers=[python("say(info()[1])", "prepare", memory=3)],
             nodeName=gpus[0].node.name)
    pods.wait_phase("three", "Succeeded")
    assert pods.log("three", "prepare") == "3072\n"
    for name, size in sizes.items():
        assert pods.log("three", name) == f"{1024 * size} 2\n"


def test_every_process_of_a_container_counts(pods, gpus):
    said = pods.run("two", python("""
import os, subprocess
other = subprocess.Popen(["python3", "-c", os.environ["MAIN"].split("import os")[0]
                          + "say(alloc(1500)); time.sleep(600)"], stdout=subprocess.PIPE)
say(other.stdout.readline().decode().strip(), alloc(1000))
other.kill()
""", memory=2), nodeName=gpus[1].node.name)
    assert said == "0 2\n"


def test_a_program_past_its_limit_is_told_on_its_pod(pods, gpus):
    """The driver's own list says who has memory; nothing of the pod can change that."""
    bypass = (BUILD / "tests" / "gpu" / "gpu-bypass").read_bytes()
    cheat = python(CHEAT.replace("/home/work/", "/tmp/") + """
while True:
    say(cheat("elf-walk").returncode)
""", memory=1)
    cheat["env"].append({"name": "BYPASS",
                         "value": base64.b64encode(zlib.compress(bypass)).decode()})
    honest = python('say(alloc(500))\ntime.sleep(600)', "other", memory=1)
    pods.pod("cheats", cheat, honest, nodeName=gpus[0].node.name)
    pods.wait_event("cheats", "AliquotLimitNotActive", "container main: process")
    assert "container other" not in str(pods.events("cheats"))


def test_a_program_with_its_part_that_gets_past_it_is_evicted(pods, gpus):
    gpu = gpus[1]
    with gpu.settings('[limits]\non-violation = "evict"\n'):
        pods.pod("past", python(behind(3000), memory=1), nodeName=gpu.node.name)
        pods.pod("beside", python("say(alloc(500))\ntime.sleep(600)", memory=1),
                 nodeName=gpu.node.name)
        pods.wait_event("past", "AliquotOverLimit", "container main: ", "the 1024 granted")
        pods.api.wait_gone(PODS, "past", pods.name)
        assert pods.get("beside")["status"]["phase"] == "Running"
        assert not [each for each in pods.events("beside") if "Aliquot" in each]


@pytest.mark.parametrize("role", ["plugin", "keep"])
def test_limits_hold_when_a_role_is_replaced_under_load(kube, pods, gpus, role):
    gpu = gpus[0]
    begin(pods, "holds", nodeName=gpu.node.name)
    program = gpu.node.components[role]
    program.kill()
    assert attempt(kube, pods, "holds", 1500) == 2
    program.start()
    gpu.wait_room()
    assert attempt(kube, pods, "holds", 1501) == 2
    assert attempt(kube, pods, "holds", 500) == 0
    # a new program of the same container finds what is taken
    said = kube.kubectl("exec", "-n", pods.name, "holds", "--", "python3", "-c",
                        CUDA + "say(info()[1], alloc(1000))")
    assert said == "2048 2\n"
