# SPDX-License-Identifier: Apache-2.0
"""graphql-js, from the registry of npm, for tests and benches that compare with it."""

import hashlib
import shutil

import fetched
from world import ROOT

HERE = ROOT / "tests" / "compat" / "graphql"
FILES = ("package.json", "package-lock.json")


def install():
    """Once on a machine; HERE/node_modules, where Node looks for it, leads there."""
    mark = hashlib.sha256((HERE / FILES[1]).read_bytes()).hexdigest()[:16]
    link = HERE / "node_modules"
    with fetched.folder(f"graphql-js-{mark}") as (folder, is_new):
        if is_new:
            for name in FILES:
                shutil.copy(HERE / name, folder / name)
            fetched.run("graphql-js", ["npm", "ci", "--silent"], cwd=folder)
        if link.resolve() != folder / "node_modules":
            shutil.rmtree(link) if link.is_dir() and not link.is_symlink() else link.unlink(True)
            link.symlink_to(folder / "node_modules")
