# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line as it is on PyPI, with a list of endpoints."""

import pytest

from ports import free_port

VERSIONS = ("22.3.2", "23.9.10", "26.9.6")


@pytest.fixture(name="listed")
def listed_fixture(bai):
    """It knows the manager, and an address where nobody listens; the order is the client's."""
    bai.env["BACKEND_ENDPOINT"] = f"http://127.0.0.1:{free_port()}," + bai.env["BACKEND_ENDPOINT"]
    return bai


def test_one_of_two_is_dead(listed):
    """Whichever it tries first, it comes to the one that answers."""
    for _ in range(4):
        assert "Apache-2.0" in listed.does("admin", "license", "show")
