# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md says of each command of the clients what the tests say."""

import pytest

import compatibility
import real_client


def test_the_page_is_that_of_the_tests_and_clients():
    trees = {}
    for version in compatibility.VERSIONS:
        trees[version] = real_client.tree_of(real_client.install(version))
    assert not compatibility.mistakes(trees)
    assert compatibility.PAGE.read_text() == compatibility.render(trees), \
        "run tools/compatibility.py"


def test_a_command_has_a_test_or_a_reason(monkeypatch):
    trees = {version: [command for at, command in (*compatibility.proofs(), *compatibility.BROKEN)
                       if at == version] for version in compatibility.VERSIONS}
    assert not compatibility.mistakes(trees)
    trees["22.3.2"].append("brew coffee")
    trees["26.9.6"].remove("ps")
    monkeypatch.setitem(compatibility.BROKEN, ("23.9.10", "ps"), "being in a test, too")
    assert compatibility.mistakes(trees) == [
        "the client 26.9.6 has no 'ps'", "'ps' (23.9.10) is proven, and fails by itself",
        "'brew coffee' (22.3.2) has neither a test nor what it waits for"]
