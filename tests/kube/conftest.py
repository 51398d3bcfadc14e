# SPDX-License-Identifier: Apache-2.0
"""One Kubernetes of two nodes for all tests of a run; each test has a namespace of its own."""

import re

import pytest

from kube_api import Namespace
from kubernetes import Kubernetes


@pytest.fixture(scope="session")
def kube():
    with Kubernetes() as made:
        yield made.start()


@pytest.fixture
def pods(kube, request):
    name = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:50].strip("-")
    made = Namespace(kube.api(), name)
    yield made
    made.end()
