# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI, from 22.03 to 26.9: code in sessions."""

import pytest

from cluster import Cluster
from runtimes import settings_of

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host") as made:
        made.start_manager()
        made.start_agent()
        yield made
        made.check_nothing_left()
        made.stop()


@pytest.mark.backendai("run")
def test_run_code(bai, folder):
    """A session is made, the code runs in it by Python, its output is shown, and it ends."""
    shown = bai.does("run", "-t", f"code-{folder.name[:2]}", "--rm", "-r", "cpu=1", "-r",
                     "mem=256m", "-c", "import sys\nprint('sum', 40 + 2)\nsys.exit(0)", "host")
    assert "sum 42" in shown
