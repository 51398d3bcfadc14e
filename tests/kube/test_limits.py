# SPDX-License-Identifier: Apache-2.0
"""Programs in pods see their part of a card and get no more, whatever is replaced meanwhile."""

import pytest

from cluster import wait_for
from gpu_cluster import CUDA
from images import archive, folder
from kube_api import container, shown
from kube_gpu import slice_of
from python_image import python_layer

pytestmark = pytest.mark.timeout(3600)  # the first one builds a Kubernetes
IMAGE = "docker.io/aliquot/python:1"
NVML = """
nvml = ctypes.CDLL("libnvidia-ml.so.1")
def total_by_nvml():
    device, memory = ctypes.c_void_p(), (ctypes.c_uint64 * 3)()
    must(nvml.nvmlInit_v2())
    must(nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
    must(nvml.nvmlDeviceGetMemoryInfo(device, memory))
    return memory[0] >> 20
"""
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


@pytest.fixture(scope="module", autouse=True)
def image(kube):
    kube.add_image(IMAGE, [python_layer(), archive([folder("tmp", mode=0o1777)])])


def python(program, name="main", **limits):
    return container('exec python3 -c "$MAIN"', name, IMAGE, slice_of(**limits),
                     env=[{"name": "MAIN", "value": CUDA + program}])


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


def begin(pods, gpu, name="holds"):
    pods.pod(name, python(HOLDS, memory=2, compute=50), nodeName=gpu.node.name)
    wait_for(lambda: "holds" in log_of(pods, name), 60, lambda: shown(pods.get(name)))
    assert log_of(pods, name) == "holds 0 2048\n", (gpu.card.show(), gpu.plugin.said())


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


@pytest.mark.parametrize("role", ["plugin", "keep"])
def test_limits_hold_when_a_role_is_replaced_under_load(kube, pods, gpus, role):
    gpu = gpus[0]
    begin(pods, gpu)
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
