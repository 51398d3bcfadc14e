# SPDX-License-Identifier: Apache-2.0
"""Nodes for sessions of four kernels."""

import pytest

from cluster import wait_for
from hosts import Hosts
from runtimes import settings_of


@pytest.fixture(scope="module", name="running", params=[1, 2], ids="nodes{}".format)
def running_fixture(request):
    """So many nodes with room for four kernels together."""
    with Hosts(count=request.param, **{
            **settings_of("crun"), "ALIQUOT_NETWORK_ENABLED": "true",
            "ALIQUOT_RESOURCE_CPUS": str(4 // request.param), "ALIQUOT_RESOURCE_MEM": "16g",
            "ALIQUOT_IMAGE_ALLOW": "* host rootfs:/"}) as hosts:
        hosts.begin()
        yield hosts
        hosts.check_all_gone()


@pytest.fixture
def hosts(running):
    yield running
    for session in running.live_sessions():
        running.client().send("DELETE", f"/session/{session['id']}?forced=true")
    wait_for(lambda: not running.live_sessions(), 60, "the sessions to end")
