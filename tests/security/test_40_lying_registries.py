# SPDX-License-Identifier: Apache-2.0
"""A container registry that lists without an end occupies neither the rescan nor memory."""

import json

import pytest

from cluster import Cluster
from images import sha256
from lying_registry import body, configure, liar, names, rescan

CONFIG = json.dumps({"architecture": "amd64", "rootfs": {}, "config": {}}).encode()


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        yield cluster


@pytest.mark.gate
def test_endless_pages_of_other_projects(cluster):
    """Their repositories are left out, so that none of them counts as one that is kept."""
    with liar({"/api/v2.0/projects/p/repositories": body([{"name": "q/i"}] * 100)}) as server:
        configure(cluster, server.address, type="harbor2", project="p")
        code, said = rescan(cluster, server.address)
    assert code != 0 and "lists more than 20000 repositories" in said, said
    assert names(cluster) == []


def test_one_image_of_countless_names(cluster):
    """Each name is kept, though it is the same image."""
    repositories = [f"{i}/{'r' * 240}" for i in range(50)]
    tags = body({"tags": [f"{i:03}{'t' * 125}" for i in range(1000)]})
    manifest = body({"config": {"digest": sha256(CONFIG), "size": 5}, "layers": [{"size": 7}]})

    class Answers(dict):
        """The same tags and image in every repository."""

        def get(self, path, default=None):
            kind = path.split("/")[-2]
            return {"tags": tags, "manifests": manifest, "blobs": (200, {}, CONFIG)}.get(
                kind, super().get(path, default))

    with liar(Answers({"/v2/_catalog": body({"repositories": repositories})})) as server:
        configure(cluster, server.address)
        code, said = rescan(cluster, server.address)
        asked = len(server.seen)
    assert code != 0 and "MiB of their names and labels" in said, (said, asked)
    assert asked < 30000, asked  # of 50000 names
    assert names(cluster) == []
