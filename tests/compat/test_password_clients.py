# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line and Python library, as they are on PyPI, change passwords."""

import pytest

import real_client
from client import ADMIN
from cluster import Cluster

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")
OLD, NEW, LAST = "long enough", "longer still", "and longer"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_AUTH_MAX_PASSWORD_AGE="1h") as made:
        made.start_manager()
        yield made
        made.stop()


def call(bai, line):
    return bai.python(f"from ai.backend.client.session import Session\nwith Session() as s: print({line})")


def logs_in(cluster, email, password):
    return cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "default", "username": email, "password": password})


@pytest.mark.backendai("update-password-no-auth", versions=("23.9.10",))
def test_passwords(cluster, server, version):
    admin, email = cluster.client(ADMIN), f"pw{version[:2]}@example.com"
    assert admin.post("/aliquot/v1/users", {"email": email, "domain": "default",
                                            "password": OLD}).status == 201
    made = admin.post("/aliquot/v1/keypairs", {"user": email}).json
    bai = real_client.RealClient(server, cluster.address, (made["access_key"], made["secret_key"]))
    if version != real_client.NEWEST:  # its library writes to a web server, in a code
        code, said = call(bai, f"s.Auth.update_password({OLD!r}, {NEW!r}, {NEW!r})")
        assert code == 0, said
        assert logs_in(cluster, email, NEW).status == 200
        code, said = call(bai, f"s.Auth.update_password({OLD!r}, {LAST!r}, {LAST!r})")
        assert code != 0 and "User credential mismatch." in said
    if version == "23.9.10":  # 22.03 knows no other way
        code, said = call(bai, "s.Auth.update_password_no_auth("
                          f"'default', {email!r}, {NEW!r}, {LAST!r})")
        assert code == 0 and "password_changed_at" in said, said
        change = ("update-password-no-auth", "default", email, LAST)
        assert "new_password" in bai.says(*change, "short")
        assert "Password updated." in bai.says(*change, OLD)
        assert logs_in(cluster, email, OLD).status == 200


@pytest.mark.parametrize("words", (("login",), ("logout",), ("update-password", "a", "b", "b")),
                         ids=lambda words: words[0])
def test_what_needs_the_web_server_says_so(bai, words):
    assert 'your endpoint type must be "session"' in bai.fails(*words, answer="me\nsecret\n")
