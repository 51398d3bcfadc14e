# SPDX-License-Identifier: Apache-2.0
"""Guessing passwords is slow, harms nobody else, and is told to the user."""

import concurrent.futures
import http.client
import itertools
import json
import subprocess
import time

import pytest

from client import Client, Reply
from cluster import Cluster
from world import BUILD

USER = {"username": "user@lablup.com", "password": "C8qnIo29"}
PAIR_FREE = 4  # failures of an account from one address until there is a delay


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


@pytest.fixture
def addresses():
    """Addresses of this test's own."""
    network = next(networks)
    return (f"198.51.{network}.{n}" for n in itertools.count(1))


networks = itertools.count(1)


def login(cluster, origin, timeout=60, source=None, **who):
    """As the proxy at 127.0.0.1 passes it on for 'origin'; 'source': from another address."""
    body = json.dumps({"type": "keypair", "domain": "default", **USER, **who}).encode()
    connection = http.client.HTTPConnection(*cluster.address, timeout=timeout,
                                            source_address=(source, 0) if source else None)
    try:
        connection.request("POST", "/auth/authorize", body,
                           {"Content-Type": "application/json",
                            **({"X-Forwarded-For": origin} if origin else {})})
        response = connection.getresponse()
        return Reply(response, response.read())
    finally:
        connection.close()


def guess_until_refused(cluster, origin, most=20, **who):
    """How many guesses were checked; the refusal."""
    for n in range(most):
        reply = login(cluster, origin, password=f"guess-{n}", **who)
        if reply.status == 429:
            return n, reply
        assert reply.status == 401, reply
    raise AssertionError(f"{most} guesses, and none was refused")


def test_guesses_from_one_address_are_delayed_more_and_more(cluster, addresses):
    origin = next(addresses)
    count, reply = guess_until_refused(cluster, origin)
    assert PAIR_FREE <= count <= PAIR_FREE + 2
    assert reply.slug == "rate-limit-exceeded" and int(reply.headers["Retry-After"]) >= 1
    assert login(cluster, origin).status == 429, "the right password does not help"
    time.sleep(int(reply.headers["Retry-After"]))
    count, reply = guess_until_refused(cluster, origin)
    assert count < PAIR_FREE, "the next ones are not free"
    time.sleep(int(reply.headers["Retry-After"]))
    assert login(cluster, origin).status == 200


def test_names_that_do_not_exist_are_treated_alike(cluster, addresses):
    real, odd = next(addresses), next(addresses)
    for n in range(PAIR_FREE + 1):
        a = login(cluster, real, password=f"guess-{n}")
        b = login(cluster, odd, username="nobody@lablup.com", password=f"guess-{n}")
        assert (a.status, a.json) == (b.status, b.json), n
    a, b = login(cluster, real), login(cluster, odd, username="nobody@lablup.com")
    assert a.status == b.status == 429 and a.json == b.json


def test_another_spelling_of_the_domain_is_the_same_account(cluster, addresses):
    origin = next(addresses)
    replies = [login(cluster, origin, username="admin@lablup.com", domain=f"d{n}", password="x")
               for n in range(PAIR_FREE + 2)]
    assert replies[-1].status == 429, "a superadmin's domain is not looked at"


def test_the_user_is_not_locked_out_from_where_they_work(cluster, addresses):
    """Any number of addresses guess; one that has logged in well does not notice."""
    home = next(addresses)
    assert login(cluster, home).status == 200
    seen = {}
    for _ in range(45):  # more than an account's failures are free
        reply = login(cluster, next(addresses), password="guess")
        seen[reply.status] = seen.get(reply.status, 0) + 1
    assert seen.get(429), "guesses from everywhere are delayed, too"
    reply = login(cluster, next(addresses))
    assert reply.status == 429 and int(reply.headers["Retry-After"]) <= 60, "never for long"
    reply = login(cluster, home)
    assert reply.status == 200, reply
    assert reply.json["data"]["failed_logins"] == seen[401]
    assert reply.json["data"]["last_failed_login"]
    assert f"after {seen[401]} that failed" in cluster.log_of("manager")
    assert login(cluster, home).json["data"]["failed_logins"] == 0


def test_many_names_from_one_address_are_delayed(cluster, addresses):
    origin = next(addresses)
    statuses = [login(cluster, origin, username=f"u{n}@lablup.com", password="x").status
                for n in range(60)]
    assert statuses[-1] == 429
    assert login(cluster, next(addresses), username="domain-admin@lablup.com",
                 password="cWbsM_vB").status == 200, "others are not"


def test_a_forwarded_address_of_anyone_else_is_ignored(cluster):
    statuses = [login(cluster, f"203.0.113.{n}", source="127.0.0.9", username="x@lablup.com",
                      password=f"guess-{n}").status for n in range(PAIR_FREE + 2)]
    assert statuses[-1] == 429, "all came from 127.0.0.9"


def test_what_a_client_says_itself_is_not_what_the_proxy_saw(cluster, addresses):
    """The proxy appends; only what it appended counts."""
    origin = next(addresses)
    statuses = [login(cluster, f"203.0.113.{n}, {origin}", username="y@lablup.com",
                      password=f"guess-{n}").status for n in range(PAIR_FREE + 2)]
    assert statuses[-1] == 429


def test_a_network_of_ipv6_is_one_address(cluster):
    statuses = [login(cluster, f"2001:db8::{n}", username="z@lablup.com",
                      password=f"guess-{n}").status for n in range(1, PAIR_FREE + 3)]
    assert statuses[-1] == 429


def test_a_flood_keeps_no_one_else_waiting(cluster, addresses):
    """One address asks for as much as it can, with names of all kinds."""
    flooder, victim = next(addresses), next(addresses)
    user = Client(cluster.address)
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        flood = [pool.submit(login, cluster, flooder, username=f"f{n}@lablup.com", password="x")
                 for n in range(200)]
        assert user.get("/aliquot/v1/sessions").status == 200
        assert login(cluster, victim, username="admin@lablup.com",
                     password="wJalrXUt").status == 200
        statuses = {future.result().status for future in flood}
    assert statuses <= {401, 429} and 429 in statuses


def test_a_signed_user_may_not_guess_their_password_either(cluster):
    """Who has the keys only."""
    admin = Client(cluster.address)
    assert admin.post("/aliquot/v1/users", {"email": "keys@lablup.com", "domain": "default",
                                            "password": "first-pw"}).status == 201
    made = admin.post("/aliquot/v1/keypairs", {"user": "keys@lablup.com"}).json
    client = Client(cluster.address, (made["access_key"], made["secret_key"]))
    replies = [client.post("/auth/update-password", {
        "old_password": f"guess-{n}", "new_password": "second-pw", "new_password2": "second-pw"})
        for n in range(PAIR_FREE + 2)]
    assert replies[0].status == 401 and replies[-1].status == 429
    assert client.get("/auth?echo=x").status == 200, "the keys are not affected"


def test_the_command_line_tells_what_failed(cluster):
    admin = Client(cluster.address)
    assert admin.post("/aliquot/v1/users", {"email": "told@lablup.com", "domain": "default",
                                            "password": "first-pw"}).status == 201
    assert admin.post("/aliquot/v1/keypairs", {"user": "told@lablup.com"}).status == 201
    for n in range(2):
        assert login(cluster, "203.0.113.77", username="told@lablup.com",
                     password=f"guess-{n}").status == 401
    done = subprocess.run([BUILD / "aliquot", "login", "http://%s:%d" % cluster.address,
                           "told@lablup.com", "--password-stdin"], input="first-pw\n",
                          env=cluster.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "2 logins with a wrong password since your last login" in done.stdout + done.stderr


def test_a_manager_stops_with_logins_under_way(cluster, addresses):
    origin = next(addresses)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(login, cluster, origin, username=f"s{n}@lablup.com", password="x")
                   for n in range(8)]
        assert cluster.programs.pop("manager").stop() == 0
        for future in waiting:
            future.exception()
    cluster.start_manager()
