# SPDX-License-Identifier: Apache-2.0
"""aliquot admin audit-log: who changed what, narrowed and exported, on either database."""

import csv
import io
import json

import pytest

from client import DOMAIN_ADMIN, USER
from cluster import Cluster

pytestmark = [pytest.mark.engines, pytest.mark.gate]
EMAIL = "watched@lablup.com"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(LC_ALL="C.UTF-8") as cluster:
        cluster.start_manager()
        for words in (("user", "create", EMAIL), ("user", "set", EMAIL, "--full-name", "First"),
                      ("user", "set", EMAIL, "--full-name", "Second, \"and\" last"),
                      ("policy", "create", "watched"), ("user", "rm", EMAIL, "--yes")):
            assert cluster.cli("admin", *words).returncode == 0, words
        yield cluster
        cluster.check_audits()
        cluster.stop()


def shown(cluster, *words, keypair=None, status=0):
    env = cluster.cli_env(keypair) if keypair else cluster.cli_env(cluster.client().keypair)
    done = cluster.run("aliquot", "admin", "audit-log", *words, **env)
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def entries(cluster, *words, **more):
    return json.loads(shown(cluster, "-o", "json", *words, **more))


def test_what_happened_to_a_user(cluster):
    rows = entries(cluster, "--object", EMAIL)
    users = [row for row in rows if row["object_kind"] == "user"]
    assert [row["action"] for row in users] == [
        "delete-user", "modify-user", "modify-user", "create-user"]
    assert users[1]["detail"] == {"before": {"full_name": "First"},
                                  "after": {"full_name": "Second, \"and\" last"}}
    assert all(row["request_id"] and row["user"] == "admin@lablup.com" for row in rows)
    text = shown(cluster, "--object", EMAIL)
    assert "modify-user" in text and EMAIL in text and "admin@lablup.com" in text


def test_it_is_narrowed(cluster):
    assert [row["object_name"] for row in entries(cluster, "--action", "delete-user")] == [EMAIL]
    assert [row["action"] for row in entries(cluster, "--object", "keypair-policy")] == [
        "create-keypair-policy"]
    assert len(entries(cluster, "--domain", "default", "-n", "2")) == 2
    assert entries(cluster, "--until", "1h") == entries(cluster, "--user", "nobody") == []
    assert entries(cluster, "--since", "1h", "--until", "2100-01-01", "--object", EMAIL)
    assert "--until takes a date" in shown(cluster, "--until", "later", status=2)


def test_it_is_exported_whole(cluster):
    everything = entries(cluster, "-n", "0")
    table = list(csv.DictReader(io.StringIO(shown(cluster, "-n", "0", "-o", "csv"))))
    assert len(table) == len(everything) >= 5
    [row] = [row for row in table if "Second" in str(row) and "First" in str(row)]
    assert EMAIL in row.values() and "modify-user" in row.values()


def test_administrators_of_a_domain_see_their_part(cluster):
    rows = entries(cluster, keypair=DOMAIN_ADMIN)
    assert rows and {row["object_domain"] for row in rows} == {"default"}
    assert entries(cluster, "--object", "keypair-policy", keypair=DOMAIN_ADMIN) == []
    shown(cluster, "--domain", "other", keypair=DOMAIN_ADMIN, status=6)
    shown(cluster, keypair=USER, status=6)
