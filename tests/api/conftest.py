"""One manager and one agent for the whole suite, and who asks them."""

import itertools

import pytest

from client import ADMIN, DOMAIN_ADMIN, USER
from cluster import Cluster

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="session")
def admin(cluster):
    return cluster.client(ADMIN)


@pytest.fixture(scope="session")
def domain_admin(cluster):
    return cluster.client(DOMAIN_ADMIN)


@pytest.fixture(scope="session")
def user(cluster):
    return cluster.client(USER)


@pytest.fixture(scope="session")
def nobody(cluster):
    return cluster.client(None)


@pytest.fixture(scope="session")
def routes(nobody):
    return nobody.get("/aliquot/v1/routes").json["routes"]


@pytest.fixture(scope="session", autouse=True)
def no_rate_limit(admin):
    """The suite asks more often than a person would."""
    for key in (ADMIN, DOMAIN_ADMIN, USER):
        assert admin.send("PATCH", "/aliquot/v1/keypairs/" + key[0],
                          {"rate_limit": 0}).status == 200


LIVE = "PENDING,SCHEDULED,PREPARING,PULLING,PREPARED,CREATING,RUNNING,RESTARTING,TERMINATING"


@pytest.fixture(scope="module", autouse=True)
def no_sessions_left(admin):
    """What a module leaves behind would hold the few processors that the next one needs."""
    yield
    query = f"/aliquot/v1/sessions?all=true&limit=1000&status={LIVE}"
    newest = Client(admin.address, ADMIN, "v9.20250722")
    for session in newest.get(query).json["items"]:
        admin.delete(f"/session/{session['id']}?forced=true"
                     f"&owner_access_key={session['access_key']}")
    wait_for(lambda: newest.get(query).json["total"] == 0, what="all sessions to end")


@pytest.fixture
def name(request):
    """A session name of this test's own."""
    return f"t{next(numbers):04d}-{request.node.name[5:40].split('[')[0]}".rstrip("_-")
