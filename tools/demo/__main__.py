# SPDX-License-Identifier: Apache-2.0
"""./demo: build, start a cluster with mock GPUs, show the scenes, say where everything is."""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shlex
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools"), str(ROOT / "tests" / "lib")]

import builds  # noqa: E402
import cluster as clusters  # noqa: E402
import commands  # noqa: E402
import folders  # noqa: E402
import python_images as images  # noqa: E402
import scenes  # noqa: E402
import screen  # noqa: E402


def say_waiting():
    screen.note("another ./demo or ./check is building; waiting for it")


def compile_programs(build):
    with builds.locked(say_waiting):
        builds.set_up(build)
        builds.compile_targets(build, on_step=lambda *step: screen.bar("compiling", *step))
    screen.good("programs compiled")


def prepare(build):
    """Programs, and meanwhile the images; returns {version: layout folder}."""
    with folders.locked_cache(say_waiting), concurrent.futures.ThreadPoolExecutor(2) as pool:
        images.remove_partial()
        try:
            pending = {version: pool.submit(images.build, version) for version in images.RELEASES}
            compile_programs(build)
            layouts = {}
            for version, future in pending.items():
                layouts[version] = future.result()
                screen.good(f"image with Python {version} ({images.RELEASES[version]})")
            return layouts
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            commands.stop_all()
            raise


def pull(cluster, references):
    screen.title("Images, pulled from a registry")
    for reference in references.values():
        cluster.show("image", "pull", reference)
    screen.note(cluster.run("image", "ls"))


def show(cluster, references):
    image = references["3.11"]
    result = {}
    screen.title("Fractions of two GPUs")
    result["gpu_alloc_map"] = scenes.gpu_alloc_map(cluster, image)
    screen.title("A queue")
    result["queue"] = scenes.queue(cluster, image)
    screen.title("Slices of a simulated GPU")
    result["gpu_slices"] = scenes.gpu_slices(cluster, image)
    screen.title("Python versions side by side")
    result["runtimes"] = scenes.runtimes(cluster, references)
    screen.title("The console, in the browser")
    result["console"] = scenes.log_in(cluster)
    screen.title("Data in folders")
    result["folders"] = scenes.data_folders(cluster, image)
    screen.title("Batch programs")
    result["batch"] = scenes.batch(cluster, image)
    screen.title("A notebook")
    result["notebook_s"] = scenes.notebook(cluster, references[images.NOTEBOOK])
    screen.title("kill -9")
    result["recovery"] = scenes.recovery(cluster, image)
    screen.title("Starting")
    result["session_start_ms"] = scenes.session_start(cluster, image)
    result["manager_rss_kb"] = scenes.resident_kb(cluster.pids()["manager"])
    return result


def stay(cluster, references):
    screen.title("The cluster goes on; Ctrl-C ends it. In another terminal:")
    aliquot = shlex.quote(str(cluster.build / "aliquot"))
    screen.note(f"export ALIQUOT_ENDPOINT={cluster.endpoint}\n"
                f"{aliquot} login --dev --endpoint {cluster.endpoint}\n"
                f"{aliquot} agent info {clusters.AGENTS[0]}\n"
                f"{aliquot} {shlex.join(scenes.notebook_words(references[images.NOTEBOOK]))}"
                "   # Jupyter in your browser\n"
                f"{aliquot} folder ls\n"
                f"In the browser: {cluster.console}, e-mail {scenes.EMAIL}, password {scenes.PASSWORD}\n"
                f"state and logs: {cluster.state}")
    with contextlib.suppress(KeyboardInterrupt):
        cluster.up.wait()
        cluster.fail("the cluster has ended by itself")


def parse():
    parser = argparse.ArgumentParser(prog="./demo", description=__doc__)
    parser.add_argument("--exit", action="store_true",
                        help="stop afterwards; the last line is then one JSON object")
    parser.add_argument("--state", metavar="FOLDER", help="folder of the cluster; kept")
    parser.add_argument("--build", metavar="FOLDER", type=pathlib.Path, default=ROOT / "build",
                        help="folder of the programs, compiled there (default: build)")
    return parser.parse_args()


def main():
    args = parse()
    started = int(os.environ.get("ALIQUOT_DEMO_STARTED", time.time_ns() // 1000)) / 1e6
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, lambda number, _: sys.exit(128 + number))
    build = args.build.absolute()
    with contextlib.ExitStack() as stack:
        state = stack.enter_context(folders.State(args.state))
        screen.title("Preparing")
        layouts = prepare(build)
        clusters.Cluster(state.folder, build, None).end_interrupted()
        state.empty()
        registry = stack.enter_context(images.Registry(state.folder / "registry"))
        registry.wait()
        for version, layout in layouts.items():
            registry.push(layout, version)
        cluster = stack.enter_context(clusters.Cluster(state.folder, build, registry.address))
        cluster.start()
        screen.good(f"a manager and two agents at {cluster.endpoint}, a console at "
                    f"{cluster.console}")
        references = {version: registry.reference(version) for version in layouts}
        pull(cluster, references)
        result = show(cluster, references)
        result["total_s"] = round(time.time() - started, 1)
        if not args.exit:
            stay(cluster, references)
    if args.exit:
        print(json.dumps(result))


if __name__ == "__main__":
    commands.main("demo", main)
