# SPDX-License-Identifier: Apache-2.0
"""Build folders: made by meson, mended when they are stale, compiled by ninja."""

import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess

import commands

ROOT = pathlib.Path(__file__).resolve().parent.parent


def locked(on_wait):
    """Nobody else builds in this checkout meanwhile; on_wait() is called if somebody does now."""
    return commands.locked(ROOT, on_wait)


def as_owner(folder, env):
    """How to run meson and ninja (options of subprocess.Popen): as the folder's owner, who can go
    on with what root, by sudo, compiles there."""
    while not folder.exists():
        folder = folder.parent
    try:
        owner = pwd.getpwuid(folder.stat().st_uid)
    except KeyError:
        return {"env": env}
    if os.geteuid() != 0 or owner.pw_uid == 0:
        return {"env": env}
    return {"env": {**(env or os.environ), "HOME": owner.pw_dir}, "user": owner.pw_uid,
            "group": owner.pw_gid, "extra_groups": []}


def compilers(name):
    """The variables by which meson takes this compiler (gcc is found without), and ccache."""
    prefix = "ccache " if shutil.which("ccache") else ""
    return {"CC": prefix + name, "CXX": f"{prefix}{name}++"}


def with_cache(env):
    """ccache reuses results of other checkouts, because paths are relative to this one. It takes
    the list of headers from the compiler instead of preprocessing each file first."""
    return {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CCACHE_DEPEND": "1",
            **(env or os.environ)}


def remedy(output):
    """What to do about a meson or ninja that said 'output' and failed."""
    if re.search(r"Meson version is \S+ but project requires", output):
        return "install Debian's meson (12 has 1.0.1) and see that PATH has no older one before it"
    if "o space left on device" in output:
        return "free some space; df -h shows how much each disk has"
    if re.search(r"not found|Unknown compiler|cannot compile programs", output):
        return "install what is missing by tools/install-packages build"
    return ""


def is_current(folder):
    """Was the folder set up for this checkout, to the end?"""
    try:
        info = json.loads((folder / "meson-info" / "meson-info.json").read_text())
        return (folder / "build.ninja").exists() and info["directories"]["source"] == str(ROOT)
    except (OSError, ValueError, KeyError):
        return False


def is_stale(output):
    """Did ninja fail because of the build folder and not of a source file?"""
    return bool(re.search(r"^FAILED: build\.ninja|^ninja: error: (loading|build\.ninja|.*no known "
                          r"rule)|: not found$", output, re.MULTILINE))


def clear(folder):
    """Remove what an interrupted 'meson setup' left, or the build folder of another checkout."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "meson-private").is_dir():
        raise commands.Failed(f"{folder} is no build folder", "", "name an empty or a new one")
    if folder.exists():
        shutil.rmtree(folder)


def has_options(folder, options):
    """Is it set up with these ("-Dtests=enabled")?"""
    there = json.loads((folder / "meson-info" / "intro-buildoptions.json").read_text())
    values = {option["name"]: str(option["value"]) for option in there}
    return all(values.get(name) in (value, value.title()) for name, _, value in
               (option.removeprefix("-D").partition("=") for option in options))


def set_up(folder, options=(), env=None):
    """Run 'meson setup' unless that was done before, to the end, for this checkout and with these
    options."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not os.access(there, os.W_OK):
        raise commands.Failed(f"{folder}: nothing can be written there", "", "use a copy of the "
                              "sources, or build elsewhere (./demo --build FOLDER)")
    if not is_current(folder):
        clear(folder)
        commands.run(["meson", "setup", *options, folder, ROOT], "meson setup", remedy,
                     **as_owner(folder, env))
    elif not has_options(folder, options):
        commands.run(["meson", "setup", "--reconfigure", *options, folder, ROOT],
                     "meson setup --reconfigure", remedy, **as_owner(folder, env))


def run_ninja(folder, targets, env, on_step):
    """ninja's output and exit status."""
    ninja = commands.start(["ninja", "-C", folder, *targets], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           **as_owner(folder, {**with_cache(env),
                                               "NINJA_STATUS": "[%f/%t] "}))
    said = []
    for line in ninja.stdout:
        said.append(line)
        if step := re.match(r"\[(\d+)/(\d+)\]", line):
            on_step(int(step[1]), int(step[2]))
    return "".join(said), commands.finish(ninja)[1]


def compile_targets(folder, targets=(), env=None, on_step=lambda done, total: None):
    """Run ninja; a folder of another compiler, meson or library is set up once more, with the
    options it had. on_step(done, total) is called as it goes on."""
    output, status = run_ninja(folder, targets, env, on_step)
    if status and is_stale(output):
        commands.run(["meson", "setup", "--wipe", folder, ROOT], "meson setup --wipe", remedy,
                     **as_owner(folder, env))
        output, status = run_ninja(folder, targets, env, on_step)
    if status:
        raise commands.Failed("compiling failed", output, remedy(output))
