# SPDX-License-Identifier: Apache-2.0
"""Who guesses passwords is in the audit log, and cannot fill it."""

import json

import pytest

from client import DOMAIN_ADMIN, USER
from cluster import Cluster, wait_for
from test_13_login_floods import PAIR_FREE, login

pytestmark = pytest.mark.gate

LOG = "/aliquot/v1/audit-log"
VICTIM = "user@lablup.com"


@pytest.fixture
def cluster():
    with Cluster(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


def rows(cluster, **want):
    items = cluster.client().get(LOG + "?limit=1000").json["items"]
    return [row for row in items if all(row[key] == value for key, value in want.items())]


def wait_rows(cluster, count, **want):
    return wait_for(lambda: len(rows(cluster, **want)) >= count and rows(cluster, **want), 10,
                    f"entries with {want}")


def test_guesses_and_logins_are_written_down(cluster):
    assert login(cluster, "198.51.1.1", password="guess").status == 401
    assert login(cluster, "198.51.1.2").status == 200
    [failed] = wait_rows(cluster, 1, outcome="failed")
    assert (failed["user"], failed["address"], failed["action"], failed["times"]) == (
        VICTIM, "198.51.1.1", "login", 1)
    assert failed["user_id"] and failed["domain"] == "default"
    [good] = wait_rows(cluster, 1, outcome="ok")
    assert (good["address"], good["access_key"]) == ("198.51.1.2", USER[0])


def test_a_killed_manager_has_written_the_first_guess(cluster):
    assert login(cluster, "198.51.1.1", password="guess").status == 401
    wait_rows(cluster, 1, outcome="failed")
    cluster.programs.pop("manager").kill()
    cluster.start_manager()
    assert len(rows(cluster, outcome="failed", address="198.51.1.1")) == 1


def test_a_flood_is_a_few_rows_that_count_all_of_it(cluster):
    statuses = [login(cluster, "198.51.1.1", password=f"guess-{n}").status for n in range(60)]
    refused = statuses.count(429)
    assert statuses.count(401) >= PAIR_FREE and refused >= 30
    wait_rows(cluster, 1, outcome="blocked")
    assert len(rows(cluster)) <= 4
    assert cluster.programs.pop("manager").stop() == 0  # writes what it has counted
    cluster.start_manager()
    assert sum(row["times"] for row in rows(cluster, outcome="failed")) == 60 - refused
    assert sum(row["times"] for row in rows(cluster, outcome="blocked")) == refused
    assert len(rows(cluster)) <= 6
    last = rows(cluster, outcome="blocked")[0]
    assert last["times"] > 1 and last["detail"]["since"] < last["at"]


def test_guesses_of_who_has_the_keys_are_written_with_the_key(cluster):
    body = {"old_password": "guess", "new_password": "second-pw", "new_password2": "second-pw"}
    assert cluster.client(USER).post("/auth/update-password", body).status == 401
    [row] = wait_rows(cluster, 1, action="update-password")
    assert (row["user"], row["access_key"], row["outcome"]) == (VICTIM, USER[0], "failed")


def test_the_command_line_shows_each_administrator_their_part(cluster):
    assert login(cluster, "198.51.1.1", password="guess").status == 401
    assert login(cluster, "198.51.1.2", username="nobody@elsewhere.com").status == 401
    wait_rows(cluster, 2, outcome="failed")

    def shown(keypair, *words):
        done = cluster.run("aliquot", "admin", "audit-log", "-o", "json", *words,
                           **cluster.cli_env(keypair))
        return json.loads(done.stdout) if done.returncode == 0 else done.returncode

    admin = cluster.client().keypair
    assert {row["user"] for row in shown(admin)} == {VICTIM, "nobody@elsewhere.com"}
    assert [row["user"] for row in shown(admin, "--user", VICTIM)] == [VICTIM]
    assert shown(admin, "--action", "logout") == [] and len(shown(admin, "--since", "1h")) == 2
    assert {row["user"] for row in shown(DOMAIN_ADMIN)} == {VICTIM}
    assert shown(USER) == 6, "denied"
    text = cluster.cli("admin", "audit-log").stdout
    assert VICTIM in text and "failed" in text and "198.51.1.1" in text
