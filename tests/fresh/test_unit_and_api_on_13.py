# SPDX-License-Identifier: Apache-2.0
"""Unit tests and those of the API on Debian 13, from a build of its compiler without a warning."""

import pytest


@pytest.fixture(scope="module")
def machine(new_machine):
    machine = new_machine("13")
    machine.clone()
    done = machine.bash("tools/install-packages build test && "
                        "meson setup build -Dwerror=true -Dtests=enabled && ninja -C build")
    assert done.returncode == 0, done.stdout[-8000:]
    return machine


def test_unit(machine):
    done = machine.bash("meson test -C build --no-rebuild --print-errorlogs --suite unit")
    assert done.returncode == 0, done.stdout[-8000:]


def test_api(machine):
    done = machine.bash("/usr/bin/python3 -m pytest -q -p no:cacheprovider -n 4 --dist loadfile "
                        "tests/api")
    assert done.returncode == 0, done.stdout[-8000:]
