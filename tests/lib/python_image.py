# SPDX-License-Identifier: Apache-2.0
"""Images of this machine's Python with programs that pip installs, such as JupyterLab."""

import functools
import os
import pathlib
import subprocess
import sysconfig

import fetched
from images import archive, file, folder, programs

PYTHON = f"python{sysconfig.get_python_version()}"
NOT_NEEDED = ("test", "__pycache__", "idle", "config-", "dist-packages", "site-packages", "lib2to3")


def tree(source, target, left_out=()):
    """Entries of a folder's files."""
    entries = []
    for top, names, files in os.walk(source):
        names[:] = [name for name in names if not name.startswith(left_out)] if left_out else names
        inside = pathlib.Path(target, pathlib.Path(top).relative_to(source))
        entries += [folder(str(inside / name)) for name in names]
        entries += [file(str(inside / name), pathlib.Path(top, name).read_bytes())
                    for name in files if pathlib.Path(top, name).is_file()]
    return entries


def libraries(*modules):
    """Entries of what compiled modules need of the node."""
    said = subprocess.run(["ldd", *modules], capture_output=True, text=True).stdout
    paths = {line.split()[2] for line in said.splitlines() if " => /" in line}
    system = sorted(path for path in paths if path.startswith(("/lib", "/usr/lib")))
    parents = sorted({str(parent)[1:] for path in system
                      for parent in pathlib.Path(path).parents[:-1]})
    return [*map(folder, parents), *(file(path[1:], pathlib.Path(path).read_bytes(), mode=0o755)
                                     for path in system)]


@functools.cache
def python_layer():
    """Python as the node has it, whole."""
    entries = programs("sh", "sleep", "cat", "env", "/usr/bin/python3")
    home = f"usr/lib/{PYTHON}"
    return archive([*entries, folder("etc"), file("etc/hosts", b"127.0.0.1 localhost\n"),
                    folder("usr/lib"), folder(home),
                    *libraries(*pathlib.Path(f"/{home}/lib-dynload").glob("*.so")),
                    *tree(f"/{home}", home, left_out=NOT_NEEDED)])


def script(path):
    """A program as pip writes it, for the image's Python."""
    lines = path.read_bytes().splitlines(keepends=True)
    return b"#!/usr/bin/python3\n" + b"".join(lines[1:])


@functools.cache
def pip_layer(*packages):
    """What pip makes of these packages, where Debian's Python looks for it."""
    site = fetched.python_packages(*packages)
    return archive([
        *(folder(name) for name in ("usr/local", "usr/local/bin", "usr/local/etc", "usr/local/share",
                                    "usr/local/lib", f"usr/local/lib/{PYTHON}",
                                    f"usr/local/lib/{PYTHON}/dist-packages")),
        folder("tmp", mode=0o1777), *libraries(*site.rglob("*.so")),
        *(file(f"usr/local/bin/{path.name}", script(path), mode=0o755)
          for path in sorted((site / "bin").glob("*")) if path.is_file()),
        *tree(site / "etc", "usr/local/etc"), *tree(site / "share", "usr/local/share"),
        *tree(site, f"usr/local/lib/{PYTHON}/dist-packages",
              left_out=("bin", "etc", "share", "__pycache__"))])
