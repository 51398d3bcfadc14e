# SPDX-License-Identifier: Apache-2.0
"""One Kubernetes of two nodes for all tests of a run; each test has a namespace of its own."""

import re

import pytest

from images import archive, folder
from kube_api import Namespace
from kube_gpu import IMAGE, GpuNode
from kubernetes import Kubernetes
from python_image import python_layer


@pytest.fixture(scope="session")
def kube():
    with Kubernetes() as made:
        yield made.start()


@pytest.fixture(scope="module")
def gpus(kube):
    """Both nodes, with cards and our roles."""
    made = [GpuNode(node) for node in kube.nodes]
    for gpu in made:
        gpu.start("keep")
        gpu.start("plugin")
    for gpu in made:
        gpu.wait_room()
    yield made
    for program in [gpu.node.components.pop(role) for gpu in made for role in ("plugin", "keep")]:
        assert program.stop() == 0 and "Sanitizer" not in program.said(), program.said()
    for gpu in made:
        gpu.card.close()


@pytest.fixture(scope="session")
def python_image(kube):
    kube.add_image(IMAGE, [python_layer(), archive([folder("tmp", mode=0o1777)])])


@pytest.fixture
def pods(kube, request):
    name = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:50].strip("-")
    made = Namespace(kube.api(), name)
    yield made
    made.end()
