# SPDX-License-Identifier: Apache-2.0
"""Which images are shown where a domain may use some registries only."""

from client import ADMIN, USER
from cluster import Cluster, wait_for
from link_agent import LinkAgent

NAMES = ["docker.io/library/python:3", "quay.io/team/tool:1"]
IMAGES = "{ images { registry name tag } }"


def shown(cluster, keypair):
    data = cluster.client(keypair).gql(IMAGES).json["data"]
    return sorted(f"{one['registry']}/{one['name']}:{one['tag']}" for one in data["images"])


def test_images_of_other_registries_are_not_shown():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.join("played")
        agent = LinkAgent(cluster, "played")
        assert agent.connect()
        agent.send({"type": "image.list", "images": [
            {"digest": f"sha256:{i}", "names": [name], "architecture": "x86_64", "size_bytes": 1,
             "labels": {}} for i, name in enumerate(NAMES)]})
        wait_for(lambda: shown(cluster, ADMIN) == NAMES, what="the images of the agent")
        assert shown(cluster, USER) == NAMES
        path = "/aliquot/v1/domains/default"
        assert cluster.client(ADMIN).send("PATCH", path, {"registries": ["quay.io"]}).status == 200
        assert shown(cluster, USER) == NAMES[1:]
        assert shown(cluster, ADMIN) == NAMES
        manager = cluster.programs["manager"]
        manager.kill()
        manager.start()
        wait_for(cluster.is_serving, 60, "the manager")
        [kept] = cluster.client(ADMIN).get("/aliquot/v1/domains?filter=name==%22default%22"
                                           ).json["items"]
        assert kept["registries"] == ["quay.io"], kept
        cluster.cli("admin", "domain", "set", "default", "--registries", "quay.io",
                    "--registries", "docker.io")
        [kept] = cluster.client(ADMIN).get("/aliquot/v1/domains").json["items"]
        assert kept["registries"] == ["quay.io", "docker.io"], kept
        cluster.cli("admin", "domain", "set", "default", "--registries", "any")
        [kept] = cluster.client(ADMIN).get("/aliquot/v1/domains").json["items"]
        assert kept["registries"] == [], kept
        agent.close()
        cluster.stop()
