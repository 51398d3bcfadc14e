# SPDX-License-Identifier: Apache-2.0
"""Who follows the events of somebody else's session learns nothing, not even that it ends."""

import uuid

import pytest

from client import sse_events
from cluster import WAITS, Cluster, batch
from two_domains import OTHER, TwoDomains

pytestmark = pytest.mark.gate


@pytest.fixture(scope="module")
def there():
    with Cluster() as cluster:
        cluster.start_manager()
        yield TwoDomains(cluster)
        cluster.stop()


@pytest.mark.parametrize("scope", ["*", "session", "kernel"])
@pytest.mark.parametrize("who", ["user", "boss"])
def test_a_foreign_session_is_as_one_that_does_not_exist(there, who, scope):
    name = f"hidden-{who}-{'all' if scope == '*' else scope}"
    made = there.stranger.post("/session", batch(name, "true", domain=OTHER, **WAITS)).json
    client = getattr(there, who)
    path = "/events/session?scope=" + scope + "&sessionId="
    if who == "boss":
        path = path.replace("?", "?ownerAccessKey=*&")
    foreign = client.get(path + made["sessionId"], timeout=10)
    missing = client.get(path + str(uuid.uuid4()), timeout=10)
    assert (foreign.status, foreign.body) == (missing.status, missing.body) and missing.status == 404
    there.stranger.delete("/session/" + made["sessionId"])
    ended = client.get(path + made["sessionId"], timeout=10)
    assert (ended.status, ended.body) == (missing.status, missing.body)


def test_the_own_session_is_followed_to_its_end_by_its_kernels(there):
    made = there.stranger.post("/session", batch("own", "true", domain=OTHER, **WAITS)).json
    sock, file, _ = there.stranger.stream("/events/session?scope=kernel&sessionId="
                                          + made["sessionId"])
    there.stranger.delete("/session/" + made["sessionId"])
    assert [event for event, _ in sse_events(file)][-1] == "server_close"
    sock.close()
