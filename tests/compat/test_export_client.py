# SPDX-License-Identifier: Apache-2.0
"""Reports as CSV, as the command line of Backend.AI 26.9 fetches them."""

import csv
import io

import pytest

VERSIONS = ("26.9.6",)


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.backendai("admin export list-reports", "admin export users", "admin export sessions",
                       "admin export projects", "admin export keypairs",
                       "admin export audit-logs")
def test_exports(cluster, bai):
    listed = bai.does("admin", "export", "list-reports")
    assert all(word in listed for word in ("users: Users", "sessions: Sessions", "- email: Email"))
    users = rows_of(bai.does("admin", "export", "users", "--fields", "email,role",
                             "--filter-email", "user@", "--filter-status", "active",
                             "--filter-after", "2020-01-01"))
    assert {"Email": "user@lablup.com", "Role": "user"} in users
    assert all("user@" in row["Email"] for row in users)
    projects = rows_of(bai.does("admin", "export", "projects", "--filter-name", "default",
                                "--filter-active"))
    assert projects[0]["Name"] == "default" and projects[0]["Active"] == "true"
    keys = rows_of(bai.does("admin", "export", "keypairs", "--fields", "access_key"))
    assert {"Access Key": "AKIAIOSFODNN7EXAMPLE"} in keys
    assert rows_of(bai.does("admin", "export", "sessions", "--filter-type", "batch",
                            "--filter-user-email", "nobody@")) == []
    logs = bai.does("admin", "export", "audit-logs", "--filter-operation", "login")
    assert logs.startswith("ID,Entity Type,")
    assert "is no field" in bai.fails("admin", "export", "users", "--fields", "password")
