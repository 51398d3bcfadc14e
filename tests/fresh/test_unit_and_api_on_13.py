# SPDX-License-Identifier: Apache-2.0
"""Unit tests, those of the API and those on PostgreSQL 17 on Debian 13, from a build of its compiler
without a warning."""

import pytest


@pytest.fixture(scope="module")
def machine(new_machine):
    machine = new_machine("13")
    machine.clone()
    done = machine.bash("tools/install-packages build test postgres && "
                        "meson setup build -Dwerror=true -Dtests=enabled && "
                        "ninja -C build all test-programs meson-test-prereq")
    assert done.returncode == 0, done.stdout[-8000:]
    return machine


def test_unit(machine):
    done = machine.bash("meson test -C build --no-rebuild --print-errorlogs --suite unit")
    assert done.returncode == 0, done.stdout[-8000:]


def test_api(machine):
    done = machine.bash("/usr/bin/python3 -m pytest -q -p no:cacheprovider -n 4 --dist loadfile "
                        "tests/api")
    assert done.returncode == 0, done.stdout[-8000:]


def test_postgres_17(machine):
    """The store's unit tests on its server, and a manager with standbys and a pooler."""
    assert machine.bash("ls /usr/lib/postgresql").stdout == "17\n"
    done = machine.bash("/usr/bin/python3 -B tests/lib/postgres.py meson test -C build --no-rebuild "
                        "--print-errorlogs --suite database")
    assert done.returncode == 0, done.stdout[-8000:]
    done = machine.bash("/usr/bin/python3 -m pytest -q -p no:cacheprovider "
                        "tests/postgres/test_server.py")
    assert done.returncode == 0, done.stdout[-8000:]
