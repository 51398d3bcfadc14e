# SPDX-License-Identifier: Apache-2.0
"""Who has a user's keypair or password, but not the address, is not let in."""

import pytest

from client import ADMIN, USER
from cluster import Cluster
from test_13_login_floods import login


@pytest.fixture(params=[True, False], ids=["behind-a-proxy", "without-one"])
def site(request):
    settings = {"ALIQUOT_API_TRUSTED_PROXIES": "127.0.0.1"} if request.param else {}
    with Cluster(**settings) as made:
        made.start_manager()
        assert made.client(ADMIN).send("PATCH", "/aliquot/v1/users/user@lablup.com",
                                       {"allowed_client_ip": ["10.0.0.0/8"]}).status == 200
        yield made, request.param
        made.stop()


def signed(cluster, origin):
    client, path = cluster.client(USER), "/auth?echo=x"
    return client.raw("GET", path, headers={**client.headers("GET", path, "text/plain"),
                                            "X-Forwarded-For": origin})


def test_only_a_trusted_proxy_says_who_asks(site):
    cluster, trusted = site
    inside = 200 if trusted else 401
    assert signed(cluster, "10.1.2.3").status == inside
    assert login(cluster, "10.1.2.3").status == inside
    assert signed(cluster, "198.51.100.7").status == 401
    assert login(cluster, "198.51.100.7").status == 401
    assert signed(cluster, "10.1.2.3, 198.51.100.7").status == 401, "the first is the client's word"
