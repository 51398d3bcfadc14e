# SPDX-License-Identifier: Apache-2.0
"""A test says which commands of Backend.AI's clients it proves, and must then have run them."""

import pytest

import real_client
from client import ADMIN
from cluster import Cluster


def pytest_configure(config):
    config.addinivalue_line("markers", "backendai(*commands, versions=all of the module): "
                            "what docs/compatibility.md cites")


def pytest_generate_tests(metafunc):
    if "folder" in metafunc.fixturenames:
        metafunc.parametrize("folder", metafunc.module.VERSIONS, indirect=True, scope="module")


@pytest.fixture(scope="module")
def cluster():
    """A manager; files whose tests need more have their own."""
    with Cluster() as made:
        made.start_manager()
        yield made
        made.stop()


@pytest.fixture(scope="module")
def folder(request):
    return real_client.install(request.param)


@pytest.fixture(scope="module")
def server(folder):
    started = real_client.Server(folder)
    yield started
    started.end()


@pytest.fixture
def bai(cluster, server):
    return real_client.RealClient(server, cluster.address, ADMIN)


@pytest.fixture
def version(folder):
    return folder.name.split("-")[0]


@pytest.fixture(autouse=True)
def proves(request):
    """Each command of the marks has succeeded when the test is over."""
    marks = list(request.node.iter_markers("backendai"))
    here = marks and request.getfixturevalue("version")
    real_client.COMMANDS.clear()
    yield
    claimed = {command for mark in marks for command in mark.args
               if here in mark.kwargs.get("versions", [here])}
    missing = [command for command in claimed
               if not any(f"{line} ".startswith(f"{command} ") for line in real_client.COMMANDS)]
    assert not missing, f"the test never had these succeed: {missing}"
