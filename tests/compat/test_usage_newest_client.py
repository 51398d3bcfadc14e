# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line 26: what it calls otherwise than the older ones."""

import pytest

from client import ADMIN

VERSIONS = ("26.9.6",)


@pytest.mark.backendai("admin resource container-registries")
def test_registries(cluster, bai):
    key = {"key": "config/docker/registry/registry.example.com", "value": "https://example.com"}
    assert cluster.client(ADMIN).post("/config/set", key).status == 200
    assert "registry.example.com" in bai.does("admin", "resource", "container-registries")
