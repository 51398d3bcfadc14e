# SPDX-License-Identifier: Apache-2.0
"""./check gate on a machine that has nothing."""

import pytest


@pytest.mark.only_all
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("version", ["12", "13"])
def test_gate(version, new_machine):
    machine = new_machine(version)
    machine.clone()
    done = machine.bash("./check gate", timeout=2700)
    assert done.returncode == 0, done.stdout[-20000:]
