# SPDX-License-Identifier: Apache-2.0
"""A program on a pseudo terminal, as a person would sit before it."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time


class Terminal:
    def __init__(self, *command, env, rows=24, columns=80):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(command[0], command, env)
        self.text, self.size = b"", (rows, columns)

    def resize(self, rows, columns):
        """The kernel tells the program by SIGWINCH."""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, data):
        os.write(self.fd, data)

    def expect(self, wanted, seconds=30):
        """Read on to 'wanted'."""
        deadline = time.monotonic() + seconds
        while wanted not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.fd, 4096)
                except OSError:
                    break
        assert wanted in self.text, self.text
        self.text = self.text.split(wanted, 1)[1]

    def read_all(self, seconds=60):
        """What the program writes until it ends."""
        deadline = time.monotonic() + seconds
        while True:
            assert time.monotonic() < deadline, "the program does not end"
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.fd, 4096)
                except OSError:
                    break
        self.hang_up()
        return self.text

    def wait(self, seconds=60):
        """Read to the end; the exit status."""
        deadline = time.monotonic() + seconds
        while True:
            assert time.monotonic() < deadline, "the program does not end"
            if not select.select([self.fd], [], [], 0.2)[0]:
                continue
            try:
                if not os.read(self.fd, 4096):
                    break
            except OSError:
                break
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def hang_up(self):
        """The window is closed."""
        os.close(self.fd)
        os.waitpid(self.pid, 0)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.hang_up()
