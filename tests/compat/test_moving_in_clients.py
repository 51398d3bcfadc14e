# SPDX-License-Identifier: Apache-2.0
"""After a cluster of Backend.AI has moved in, its people go on with the client, the keys and the
passwords that they have."""

import subprocess

import pytest

import backendai_database as old
import real_client
from cluster import Cluster
from postgres import Server
from world import BUILD

VERSIONS = ("22.3.2", "23.9.10")
PEOPLE = {"22.3.2": ("ann", "correct horse"), "23.9.10": ("bob", "battery staple")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    dump = tmp_path_factory.mktemp("moving") / "backend.sql"
    with Server() as database:
        dump.write_bytes(old.dump(old.make(database)))
    with Cluster() as made:
        made.start_manager()
        subprocess.run([BUILD / "aliquot", "admin", "import-backendai", dump], check=True,
                       env={**made.env, **made.cli_env()}, capture_output=True)
        yield made
        made.stop()


def test_people_go_on(cluster, server, version):
    who, password = PEOPLE[version]
    bai = real_client.RealClient(server, cluster.address, old.KEYS[who])
    assert bai.json("ps")["count"] == 0
    for before, after in ((password, "longer still"), ("longer still", "and longer")):
        code, said = bai.python("from ai.backend.client.session import Session\n"
                                "with Session() as s:\n"
                                f"    print(s.Auth.update_password({before!r}, {after!r}, {after!r}))")
        assert code == 0, said
    reply = cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "labs", "username": f"{who}@labs.example",
        "password": "and longer"})
    assert reply.json["data"]["access_key"] == old.KEYS[who][0], reply
