# SPDX-License-Identifier: Apache-2.0
"""Run the suites of ./check beside each other and count.

Each build folder is made by one of the threads, in turn; a suite starts when
what it needs is built. What a suite says is in check-results/SUITE.log, its
cases in SUITE.xml, how long everything took in seconds.json.
"""

import argparse
import concurrent.futures
import fcntl
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import builds
import commands
import repeat
import results
from suites import BUILDS, GROUPS, JOBS, RESULTS, ROOT, SUITES, gate

PROGRESS_SEC = 30
LOG_LINES = 30
SLOWEST = {"gate": 10}
BUDGET_SEC = {"gate": 600}  # on two cores, with nothing built before


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def chosen_tasks(words):
    """['unit', 'api'], ['unit', 'http/client'], ['gate'] or []: the suites and their tasks."""
    if words[:1] == ["gate"]:
        return ["gate"], gate(words[1:])
    if words and words[0] not in SUITES:
        raise commands.Failed(f"there is no suite '{words[0]}'", "",
                              f"there are gate, {', '.join(SUITES)}")
    if all(word in SUITES for word in words):
        suites = words or list(SUITES)
        return suites, [task for suite in suites for task in SUITES[suite]([])]
    return words[:1], SUITES[words[0]](words[1:])


def install(suites):
    groups = dict.fromkeys(group for suite in suites for group in GROUPS.get(suite, []))
    if groups and subprocess.run([ROOT / "tools" / "install-packages", *groups]).returncode:
        sys.exit("check: packages that the tests need cannot be installed")


class Run:
    """Tasks, and what is done of them."""

    def __init__(self, tasks):
        self.waiting, self.running = list(tasks), {}
        self.is_shown = len(tasks) == 1  # then its output is ours
        self.broken, self.seconds, self.steps = [], {}, {}

    # ---- builds ----

    def targets(self, name):
        """What the tasks need of a build folder: one function for all."""
        needs = [task.builds[name] for task in self.waiting if name in task.builds]

        def merged(folder):
            lists = [need(folder) for need in needs]
            return list(dict.fromkeys(target for one in lists for target in one))
        return merged

    def build(self, name, targets):
        folder, started = ROOT / name, time.monotonic()
        env = {**os.environ, **(builds.compilers("clang") if name == "build-fuzz" else {})}
        try:
            with builds.locked(lambda: say(f"{name} waits for another ./check or ./demo to build")):
                builds.set_up(folder, BUILDS[name], env)
                builds.compile_targets(
                    folder, targets(folder), env,
                    lambda done, total: self.steps.update({name: (done, total)}))
        finally:
            self.steps.pop(name, None)
        self.seconds[name] = round(time.monotonic() - started, 1)
        say(f"{name} built in {self.seconds[name]:.0f} s")

    # ---- tasks ----

    def perform(self, task):
        started = time.monotonic()
        if self.is_shown:
            is_good = task.run(task, None)
        else:
            with task.file("log").open("w") as log:
                is_good = task.run(task, log)
        self.seconds[task.name] = round(time.monotonic() - started, 1)
        say(f"{task.name} {'done' if is_good else 'FAILED'} in {self.seconds[task.name]:.0f} s")
        return is_good

    def fits(self, task, built):
        same = [other for other in self.running.values() if other.is_bare == task.is_bare]
        return (len(same) < (1 if task.is_bare else JOBS)
                and all(built[name].done() for name in task.builds))

    def start_next(self, pool, built):
        """Whether there was one that can start."""
        task = next((task for task in self.waiting if self.fits(task, built)), None)
        if not task:
            return False
        self.waiting.remove(task)
        if failed := [name for name in task.builds if built[name].exception()]:
            say(f"{task.name} is left out: there is no {' and no '.join(failed)}")
            self.broken.append(task)
        else:
            self.running[pool.submit(self.perform, task)] = task
        return True

    def finish(self, future):
        task = self.running.pop(future)
        error = future.exception()
        if isinstance(error, (commands.Failed, OSError)):
            say(f"{task.name}: {error}")
        elif error:
            raise error
        if error or not future.result() and not any(
                case.state == "failed" for case in results.read([task])):
            self.broken.append(task)

    def show_progress(self):
        parts = [f"{name} {100 * done // total} %" for name, (done, total) in self.steps.items()]
        parts += [task.name + percent_of(task) for task in self.running.values()]
        say("; ".join(parts))

    def go(self):
        names = [name for name in BUILDS if any(name in task.builds for task in self.waiting)]
        with concurrent.futures.ThreadPoolExecutor(1) as builder, \
                concurrent.futures.ThreadPoolExecutor(JOBS + 1) as pool:
            try:
                built = {name: builder.submit(self.build, name, self.targets(name))
                         for name in names}
                self.loop(pool, built)
            except BaseException:
                builder.shutdown(wait=False, cancel_futures=True)
                commands.stop_all()
                raise
        return [future.exception() for future in built.values() if future.exception()]

    def loop(self, pool, built):
        while self.waiting or self.running:
            if self.start_next(pool, built):
                continue
            pending = [future for future in built.values() if not future.done()]
            done, _ = concurrent.futures.wait([*self.running, *pending], PROGRESS_SEC,
                                              concurrent.futures.FIRST_COMPLETED)
            for future in done & self.running.keys():
                self.finish(future)
            if not done and not self.is_shown:
                self.show_progress()


def percent_of(task):
    """How far its log says that it is."""
    if not task.file("log").exists():
        return ""
    tail = task.file("log").read_text(errors="replace")[-4000:]
    if found := re.findall(r"\[ *(\d+)%\]", tail):
        return f" {found[-1]} %"
    if found := re.findall(r"^ *(\d+)/(\d+) ", tail, re.M):
        return f" {100 * int(found[-1][0]) // int(found[-1][1])} %"
    return ""


def show_end(run, cases, failures, number):
    """Slowest tests, then all that went wrong."""
    results.show_slowest(cases, number)
    results.show_failures(cases, with_text=not run.is_shown)
    for task in run.broken:
        if not run.is_shown and task.file("log").exists():
            print(f"\n{task.name} ended badly:")
            print("\n".join(task.file("log").read_text(errors="replace")
                            .splitlines()[-LOG_LINES:]))
    for failure in failures:
        if not isinstance(failure, (commands.Failed, OSError)):
            raise failure
        text = str(failure) if isinstance(failure, commands.Failed) else commands.describe(failure)
        print("\n".join([*getattr(failure, "last_lines", []), f"check: {text}"]))


def show_time(asked, seconds):
    print(f"{asked}: {seconds:.0f} s")
    budget = BUDGET_SEC.get(asked)
    if budget and seconds > budget:
        print(f"WARNING: that is more than the {budget} s that the {asked} may take")


def hold(tasks):
    """Files whose locks say that we run these suites: their results are ours."""
    held = []
    for suite in sorted({task.suite for task in tasks}):
        held.append((RESULTS / f"{suite}.lock").open("w"))
        try:
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise commands.Failed(f"another ./check runs suite {suite} in this folder", "",
                                  "wait for its end") from None
    return held


def check(words):
    suites, tasks = chosen_tasks(words)
    install(suites)
    RESULTS.mkdir(exist_ok=True)
    held = hold(tasks)
    for task in tasks:
        for suffix in ("xml", "log"):
            task.file(suffix).unlink(missing_ok=True)
    shutil.rmtree(repeat.FOLDER, ignore_errors=True)
    started = time.monotonic()
    run = Run(tasks)
    failures = run.go()
    cases = results.read(tasks)
    repeat.repeat(cases, say)
    seconds = round(time.monotonic() - started, 1)
    (RESULTS / "seconds.json").write_text(json.dumps(
        {"asked": words, **run.seconds, "total": seconds}) + "\n")
    asked = words[0] if words else "everything"
    show_end(run, cases, failures, SLOWEST.get(asked, 20))
    show_time(asked, seconds)
    status = results.close(cases, len(run.broken))
    for file in held:
        file.close()
    sys.exit(status)


def main():
    parser = argparse.ArgumentParser(
        prog="./check", description=__doc__.splitlines()[0],
        epilog=f"suites: {', '.join(SUITES)}; gate: unit, api and the main path of each feature")
    parser.add_argument("words", nargs="*", metavar="SUITE [NAME]",
                        help="default: all; a NAME is a test or a file of tests of one suite")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was started, too
    commands.main("check", functools.partial(check, parser.parse_args().words))


if __name__ == "__main__":
    main()
