# SPDX-License-Identifier: Apache-2.0
"""Managers of two versions side by side, while a cluster is upgraded under load."""

import os

import pytest

from cluster import wait_for
from conftest import SPEC
from manager_lab import Load, Managers
from world import BUILD, ROOT


@pytest.fixture
def old_build():
    """The folder with the programs of an older version."""
    named = os.environ.get("ALIQUOT_OLD_BUILD", "")
    folder = ROOT / named
    if not named or not (folder / "aliquot-manager").exists():
        pytest.skip("ALIQUOT_OLD_BUILD names no build folder of an older version")
    return folder


def migrations(pair):
    """How many the database has."""
    return int(pair.primary.run("SELECT COUNT(*) FROM schema_migrations", "cluster")[0])


def known_migrations():
    return len(list((ROOT / "src" / "store" / "migrations").glob("*.sql")))


def wait_standby(manager):
    wait_for(lambda: manager.health().get("role") == "standby", 60, manager.log)


def replace(manager, build):
    """As a package does it: stopped in good order, and started again."""
    assert manager.program.stop() == 0, manager.log()
    manager.build = build
    manager.start()
    wait_standby(manager)


def give_lead(cluster, to):
    former = cluster.leader()
    reply = former.client().post("/aliquot/v1/managers/yield", {"to": to.name})
    assert reply.status == 202, reply
    assert cluster.wait_leader(but=former) is to
    wait_standby(former)


def test_rolling_upgrade(switch, pair, old_build):
    """Standbys first; the first leader of the new version changes the schema, fails, and one of the
    old version leads again before it is upgraded, too. Agents are of the old version all the time."""
    with Managers(switch, pair.uri("cluster"), build=old_build) as cluster:
        cluster.start()
        cluster.start_swarm(nodes=20, cores=64, gpus=4)
        load = Load(cluster, spec=SPEC)
        load.wait_created(20)
        old = cluster.leader()
        new = next(manager for manager in cluster.all if manager is not old)
        was = migrations(pair)
        replace(new, BUILD)
        load.wait_created(20)
        assert migrations(pair) == was
        give_lead(cluster, new)
        load.wait_created(20)
        assert migrations(pair) == known_migrations() >= was
        new.kill()
        assert cluster.wait_leader(but=new) is old
        load.wait_created(20)
        new.start()
        wait_standby(new)
        give_lead(cluster, new)
        replace(old, BUILD)
        load.wait_created(20)
        give_lead(cluster, old)
        load.wait_created(20)
        load.stop()
        cluster.wait_settled()
        cluster.swarm.wait_connected(120)
        load.check()


def test_standby_too_old_for_the_schema(pair, cluster, load):
    """A later version has changed the database so that this one may not serve it: it says by which
    migration, and ends without an effect."""
    first = cluster.leader()
    second = next(manager for manager in cluster.all if manager is not first)
    pair.primary.run("INSERT INTO schema_migrations VALUES (9999, '9999_later', 'x', 1);"
                     "UPDATE schema_readers SET oldest = 9999", "cluster")
    load.wait_created(20)
    first.kill()
    assert second.program.process.wait(60) == 1, second.log()
    assert "made by a newer program: it has migration 9999 '9999_later'" in second.log()
    pair.primary.run("DELETE FROM schema_migrations WHERE number = 9999;"
                     "UPDATE schema_readers SET oldest = 51", "cluster")
    cluster.wait_settled()
    load.wait_created(20)
