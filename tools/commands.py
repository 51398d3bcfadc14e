# SPDX-License-Identifier: Apache-2.0
"""Run commands, and end in words when one fails: its last lines, what failed, what to do."""

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading

LAST_LINES = 15
REMEDIES = {
    errno.ENOSPC: "free some space there; df -h shows how much each disk has",
    errno.EDQUOT: "free some space there; the quota is used up",
    errno.EROFS: "use a copy in a folder that can be written",
    errno.EACCES: "run this as a user who may, or use another folder",
    errno.EPERM: "run this as root, where root may do that",
}

_running = {}  # process: what ends it
_lock = threading.Lock()
_is_stopping = False


class Failed(Exception):
    """'what' failed after it had said 'output'; 'remedy' says what to do about it."""

    def __init__(self, what, output="", remedy=""):
        super().__init__(f"{what}: {remedy}" if remedy else what)
        self.last_lines = output.rstrip().splitlines()[-LAST_LINES:]


def ended_with_us(command, ended_by=signal.SIGTERM):
    """The command for subprocess that runs 'command', which gets the signal 'ended_by' when the
    thread that started it ends, however that happens: the shell sees an end before setpriv."""
    return ["setpriv", "--pdeathsig", ended_by.name[3:], "sh", "-c",
            'test "$PPID" = "$0" && exec "$@"', str(os.getpid()), *map(str, command)]


def start(command, ended_by=signal.SIGTERM, **options):
    """A process (subprocess.Popen) that gets the signal 'ended_by' when we are killed, and from
    stop_all(); finish() waits for it."""
    if not shutil.which(str(command[0])):
        raise Failed(f"the program {command[0]} is missing", "",
                     "tools/install-packages installs what is needed")
    with _lock:
        if _is_stopping:
            raise Failed("interrupted")
        process = subprocess.Popen(ended_with_us(command, ended_by), text=True, errors="replace",
                                   **options)
        _running[process] = ended_by
    return process


def finish(process):
    """Wait for a process of start(): its output, if that is a pipe, and its exit status."""
    try:
        return process.communicate()[0] or "", process.returncode
    finally:
        with _lock:
            _running.pop(process, None)


def run(command, what, remedy="", on_line=None, **options):
    """Run a command to its end; returns what it said on both streams. Raises Failed if its exit
    status is not 0. 'remedy' is a text, or a function that makes one of the output; on_line() is
    called with each line as it comes."""
    process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, **options)
    said = []
    for line in process.stdout if on_line else ():
        said.append(line)
        on_line(line)
    output, status = finish(process)
    output = "".join(said) + output
    if status:
        raise Failed(f"{what} failed", output, remedy(output) if callable(remedy) else remedy)
    return output


@contextlib.contextmanager
def locked(folder, on_wait):
    """No other process has the folder's lock meanwhile; on_wait() is called if one has it now."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _end(process, signum):
    """With its group, if it has one of its own: a child that does not end with it yet."""
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signum)
        else:
            process.send_signal(signum)


def stop_all():
    """End what other threads run, and let them start nothing more; their run() raises Failed."""
    global _is_stopping
    with _lock:
        _is_stopping = True
        for process, ended_by in _running.items():
            _end(process, ended_by)


def describe(error):
    """An OSError in words: on what, why, and what to do."""
    name = f"{error.filename}: " if error.filename else ""
    remedy = REMEDIES.get(error.errno)
    return f"{name}{error.strerror or error}" + (f": {remedy}" if remedy else "")


def main(name, function):
    """Run a tool's main function; a failure that can be expected ends it without a traceback."""
    try:
        function()
    except Failed as e:
        sys.exit("\n".join([*e.last_lines, f"{name}: {e}"]))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads any more
        sys.exit(141)
    except OSError as e:
        sys.exit(f"{name}: {describe(e)}")
