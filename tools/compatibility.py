#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Write docs/compatibility.md: the commands of Backend.AI's clients, as the clients themselves list
them, and for each the test that proves it or the capability that it waits for.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
VERSIONS = ("22.3.2", "23.9.10", "26.9.6")
# The first that matches says what a command without a test waits for.
WAITS = (
    (r"v2 ", "the second REST API of Backend.AI"),
    (r"admin vfolder (get-fstab-contents|u?mount-host)", "mounts that the manager makes"),
    (r"admin quota-scope", "quotas of all folders of an owner on a host"),
    (r"vfolder", "folders"),
    (r"service|model|deployment|scheduling-history (deployment|route)|admin prometheus-query", "inference"),
    (r"network", "networks that users make"),
    (r"(session )?(commit|convert-to-image)$", "images made from sessions"),
)
# What the client itself does wrong, whatever the manager says.
BROKEN = {
    ("22.3.2", "admin scaling-group dissociate-scaling-group"): "printing that it is done",
    ("23.9.10", "admin scaling-group dissociate-scaling-group"): "printing that it is done",
    ("22.3.2", "admin resource usage-per-period"): "expecting an object in place of a list",
    ("23.9.10", "admin resource usage-per-period"): "expecting an object in place of a list",
    ("23.9.10", "admin agent info"): "showing milliseconds of at most 8 processors",
    ("22.3.2", "create-from-template"): "calling its library with what that does not take",
    ("22.3.2", "session create-from-template"): "calling its library with what that does not take",
    ("26.9.6", "create-from-template"): "calling its library with what that does not take",
    ("26.9.6", "session create-from-template"): "calling its library with what that does not take",
    ("22.3.2", "vfolder cp"): "not being written yet",
    ("23.9.10", "vfolder cp"): "not being written yet",
    ("26.9.6", "vfolder cp"): "not being written yet",
    ("22.3.2", "vfolder request-download"): "calling what its library does not have",
    ("23.9.10", "vfolder request-download"): "calling what its library does not have",
    ("26.9.6", "vfolder request-download"): "calling what its library does not have",
    ("23.9.10", "service downscale-route"): "calling its function with what that does not take",
    ("26.9.6", "service downscale-route"): "calling its function with what that does not take",
    ("26.9.6", "session set-priority"): "looking up the session",
    ("26.9.6", "notification channel validate"): "reading the answer, when it has been sent",
    ("26.9.6", "fair-share resource-group update-spec"): "printing what it has changed",
    ("26.9.6", "fair-share rg-domain-usage list"): "calling what its library does not have",
    ("26.9.6", "fair-share rg-project-usage list"): "calling what its library does not have",
    ("26.9.6", "fair-share rg-user-usage list"): "calling what its library does not have",
}
HEAD = """# Commands of Backend.AI's clients

What Backend.AI's own command line, unmodified, can do against Aliquot: each command of three versions and the test that runs it. `tools/compatibility.py` writes this page from the clients and the tests; a test compares. A test that is cited here fails if it did not run the command with success. "waits for" names what Aliquot lacks; "fails by itself" is about what no manager can change, and is tested too.
"""


def proofs():
    """(version, command) -> FILE::TEST, from the marks of tests."""
    found = {}
    for path in sorted((ROOT / "tests" / "compat").glob("test_*.py")):
        tree = ast.parse(path.read_text())
        versions = [ast.literal_eval(node.value) for node in tree.body if isinstance(
            node, ast.Assign) and getattr(node.targets[0], "id", "") == "VERSIONS"]
        for node in tree.body:
            for mark in getattr(node, "decorator_list", []):
                if ast.unparse(mark).startswith("pytest.mark.backendai("):
                    limit = [ast.literal_eval(word.value) for word in mark.keywords]
                    for version in (limit or versions)[0]:
                        for command in mark.args:
                            found.setdefault((version, ast.literal_eval(command)),
                                             f"{path.stem}::{node.name}")
    return found


def what_of(version, command, proven):
    """What is said of it; None if nothing can be."""
    if (version, command) in proven:
        return f"`{proven[version, command]}`"
    if (version, command) in BROKEN:
        return f"fails by itself, {BROKEN[version, command]}"
    return next((f"waits for {capability}" for pattern, capability in WAITS
                 if re.match(pattern, command)), None)


def mistakes(trees):
    """What is said of commands that do not exist, twice, or not at all."""
    proven, found = proofs(), []
    for version, command in (*proven, *BROKEN):
        if command not in trees[version]:
            found.append(f"the client {version} has no '{command}'")
    found += [f"'{command}' ({version}) is proven, and fails by itself"
              for version, command in BROKEN if (version, command) in proven]
    found += [f"'{command}' ({version}) has neither a test nor what it waits for"
              for version, commands in trees.items() for command in commands
              if not what_of(version, command, proven)]
    return found


def render(trees):
    """The page, from version -> commands."""
    proven = proofs()
    lines = [HEAD]
    for version, commands in trees.items():
        count = sum((version, command) in proven for command in commands)
        lines += [f"## {version}", "", f"{count} of {len(commands)} commands are proven.", "",
                  "| command | |", "|---|---|",
                  *(f"| {command} | {what_of(version, command, proven)} |"
                    for command in sorted(commands)), ""]
    return "\n".join(lines)


def main():
    sys.path.append(str(ROOT / "tests" / "lib"))
    import real_client
    trees = {}
    for version in VERSIONS:
        trees[version] = real_client.tree_of(real_client.install(version))
    if found := mistakes(trees):
        raise SystemExit("\n".join(found))
    PAGE.write_text(render(trees))


if __name__ == "__main__":
    main()
