# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's Python library 26.9 as it is on PyPI: signing up, and keys for SSH."""

import json
import subprocess

import pytest

import real_client
from cluster import Cluster

VERSIONS = ("26.9.6",)
PROGRAM = """
import asyncio, json, sys
from yarl import URL
from ai.backend.client.v2.auth import HMACAuth
from ai.backend.client.v2.config import ClientConfig
from ai.backend.client.v2.registry import BackendAIClientRegistry
from ai.backend.common.dto.manager.auth.request import *

async def main(endpoint, access_key, secret_key, name, kind, fields):
    client = await BackendAIClientRegistry.create(
        ClientConfig(endpoint=URL(endpoint)), HMACAuth(access_key, secret_key))
    try:
        words = [globals()[kind](**json.loads(fields))] if kind else []
        answer = await getattr(client.auth, name)(*words)
        print(json.dumps(answer.model_dump(mode="json")))
    finally:
        await client.close()

asyncio.run(main(*sys.argv[1:]))
"""
PUBLIC = ("ssh-ed25519 "
          "AAAAC3NzaC1lZDI1NTE5AAAAILgn0v/o9KeGk4xWaCz4nh9qfb8Z0llgEYXbaYbiGVXp")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_SIGNUP_ENABLED="true") as made:
        made.start_manager()
        yield made
        made.stop()


def call(cluster, folder, keypair, name, kind="", **fields):
    done = subprocess.run(
        [*real_client.python_of(folder), "-c", PROGRAM, "http://%s:%d" % cluster.address, *keypair,
         name, kind, json.dumps(fields)], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_signing_up_and_ssh_keys(cluster, folder):
    person = {"domain": "default", "email": "new@example.com", "password": "long enough",
              "full_name": "New", "description": "lasers"}
    code, said = call(cluster, folder, ("", ""), "signup", "SignupRequest", **person)
    assert code == 0, said
    made = json.loads(said)
    keypair = (made["access_key"], made["secret_key"])
    code, said = call(cluster, folder, ("", ""), "signup", "SignupRequest", **person)
    assert code != 0 and "Email already exists" in said
    code, said = call(cluster, folder, keypair, "get_ssh_keypair")
    assert code == 0 and json.loads(said) == {"ssh_public_key": ""}, said
    code, said = call(cluster, folder, keypair, "generate_ssh_keypair")
    assert code == 0, said
    assert "PRIVATE KEY" in json.loads(said)["ssh_private_key"]
    code, said = call(cluster, folder, keypair, "upload_ssh_keypair", "UploadSSHKeypairRequest",
                      pubkey=PUBLIC, privkey="mine")
    assert code == 0 and json.loads(said) == {"ssh_public_key": PUBLIC,
                                              "ssh_private_key": "mine"}, said
