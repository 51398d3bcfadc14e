# SPDX-License-Identifier: Apache-2.0
"""What the database is, and its space given back."""

import json

import pytest

from cluster import Cluster, batch, wait_status

pytestmark = [pytest.mark.engines, pytest.mark.gate]


def db(cluster, *words, **settings):
    return cluster.run("aliquot-manager", "db", *words, "--state", cluster.folder / "manager",
                       **settings)


def stop(cluster):
    for name in ("agent", "manager"):
        if name in cluster.programs:
            cluster.programs.pop(name).stop()


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as running:
        running.start_manager()
        running.start_agent()
        made = running.client().post("/session", batch("one", "true")).json["sessionId"]
        wait_status(running.client(), made, "TERMINATED")
        yield running


def test_info(cluster):
    is_server = "ALIQUOT_MANAGER_DATABASE" in cluster.env
    done = db(cluster, "info", "--json")
    assert done.returncode == 0, done
    info = json.loads(done.stdout)
    assert info["engine"].startswith("PostgreSQL " if is_server else "SQLite 3."), info
    assert info["bytes"] > 50000 and not info["migrations_missing"] + info["migrations_unknown"]
    assert info["rows"]["sessions"] == 1 and info["rows"]["users"] == 3, info
    assert info["manager"] == ("127.0.0.1:%d" % cluster.address[1] if is_server else None)
    text = db(cluster, "info").stdout
    assert info["engine"] in text and info["schema"] in text, text


# ---- the engine's own shell ----

def shell(cluster, script, *words, **settings):
    return cluster.run("aliquot-manager", "db", "shell", *words, "--state",
                       cluster.folder / "manager", says=script, **settings)


def test_shell_reads(cluster):
    """Beside the manager, through the command line as well."""
    done = shell(cluster, "SELECT name FROM sessions;\n")
    assert done.returncode == 0 and "one" in done.stdout and not done.stderr, done
    done = cluster.run("aliquot", "admin", "db", "shell", "--state", cluster.folder / "manager",
                       says="SELECT COUNT(*) + 40 FROM sessions;\n")
    assert done.returncode == 0 and "41" in done.stdout, done
    done = shell(cluster, "UPDATE sessions SET name = 'two';\nSELECT name FROM sessions;\n")
    assert "read" in done.stderr and "one" in done.stdout and "two" not in done.stdout, done


def test_vacuum(cluster):
    is_server = "ALIQUOT_MANAGER_DATABASE" in cluster.env
    done = db(cluster, "vacuum")
    if is_server:
        assert done.returncode == 0 and "before" in done.stdout, done
    else:
        assert done.returncode == 1 and "stop it first" in done.stderr, done
    stop(cluster)
    done = db(cluster, "vacuum")
    assert done.returncode == 0 and "before" in done.stdout, done
    assert db(cluster, "check").stdout == "nothing found\n"


def test_shell_writes_if_told_to(cluster):
    """And what is broken by it, 'check' finds."""
    stop(cluster)
    done = shell(cluster, "UPDATE allocations SET free_at = NULL WHERE slot = 'cpu';\n", "--write")
    assert done.returncode == 0 and "stop it first" in done.stderr, done
    found = db(cluster, "check")
    assert found.returncode == 1 and "holds resources" in found.stdout, found
    done = shell(cluster, "UPDATE allocations SET free_at = 1 WHERE slot = 'cpu';\n", "--write")
    assert done.returncode == 0 and db(cluster, "check").stdout == "nothing found\n", done


def test_shell_that_is_not_there(cluster):
    (cluster.folder / "empty").mkdir(exist_ok=True)
    done = shell(cluster, "", PATH=str(cluster.folder / "empty"))
    assert done.returncode == 1 and "is not installed: apt install" in done.stderr, done
    done = cluster.run("aliquot-manager", "db", "shell", "--state", cluster.folder / "none",
                       ALIQUOT_MANAGER_DATABASE="")
    assert done.returncode == 1 and "none/aliquot.db" in done.stderr, done


def test_bad_input(cluster):
    done = db(cluster, "inform")
    assert done.returncode == 1 and "info, check, vacuum" in done.stderr, done
    done = cluster.run("aliquot-manager", "db", "info", "--state", cluster.folder / "none",
                       ALIQUOT_MANAGER_DATABASE="")
    assert done.returncode == 1 and "none" in done.stderr, done
