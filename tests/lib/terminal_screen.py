# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a program that has the whole terminal: the screen that its bytes make."""

import os
import re
import select
import termios
import time
import unicodedata

from terminal import Terminal

SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


def width(character):
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen(Terminal):
    """Knows the sequences that our programs write, and fails at any other."""

    def __init__(self, *command, env, rows=24, columns=80):
        self.is_alternate, self.has_cursor = False, True
        super().__init__(*command, env=env, rows=rows, columns=columns)
        self.waiting = b""
        self.erased = 0  # times that all of it was erased at once, which flickers
        self.colours = set()
        self.is_settled = True  # what comes is for this size
        self.clear()

    def clear(self):
        rows, columns = self.size
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0

    def resize(self, rows, columns):
        """A frame of the old size may be on its way still; is_settled says when none is."""
        super().resize(rows, columns)
        self.size, self.is_settled = (rows, columns), False
        self.clear()

    @property
    def is_raw(self):
        return not termios.tcgetattr(self.fd)[3] & (termios.ECHO | termios.ICANON)

    @property
    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def __str__(self):
        return "\n".join(self.lines)

    # ---- what the program writes ----

    def put(self, character):
        rows, columns = self.size
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            if self.row == rows:
                assert not (self.is_alternate and self.is_settled), f"it scrolls:\n{self}"
                self.cells = self.cells[1:] + [[" "] * columns]
                self.row -= 1
        elif width(character):
            beyond = self.column + width(character) > columns
            assert not (beyond and self.is_alternate and self.is_settled), f"too wide:\n{self}"
            self.column = columns - width(character) if beyond else self.column
            self.cells[self.row][self.column] = character
            if width(character) == 2:
                self.cells[self.row][self.column + 1] = ""
            self.column += width(character)

    def obey(self, private, numbers, final):
        if private:
            shown = final == "h"
            if numbers == "1049":
                self.is_alternate = shown
                self.clear()
            elif numbers == "25":
                self.has_cursor = shown
            else:
                assert numbers == "7", numbers  # long lines go on below
        elif final == "m":
            self.colours.add(numbers)
        elif final == "H":
            assert not numbers
            self.row = self.column = 0
        elif final == "K":
            self.cells[self.row][self.column:] = [" "] * (self.size[1] - self.column)
        else:
            assert final == "J" and not numbers, (numbers, final)
            self.erased += self.row == 0
            for row in range(self.row, self.size[0]):
                start = self.column if row == self.row else 0
                self.cells[row][start:] = [" "] * (self.size[1] - start)

    def take(self, data):
        self.text += data
        self.waiting += data
        while self.waiting:
            again = self.waiting.find(b"\x1b", 1)
            if again > 0 and self.is_cut(self.waiting[:again]):
                self.waiting = self.waiting[again:]
            elif self.waiting[:1] == b"\x1b":
                found = SEQUENCE.match(self.waiting[:30].decode("latin-1"))
                if not found:
                    assert len(self.waiting) < 30, self.waiting
                    return
                self.obey(*found.groups())
                self.waiting = self.waiting[found.end():]
            elif self.waiting[0] < 0x80:
                self.put(chr(self.waiting[0]))
                self.waiting = self.waiting[1:]
            else:
                size = 2 + (self.waiting[0] >= 0xe0) + (self.waiting[0] >= 0xf0)
                if len(self.waiting) < size:
                    return
                self.put(self.waiting[:size].decode())
                self.waiting = self.waiting[size:]

    @staticmethod
    def is_cut(piece):
        """What a program that was interrupted left of a sequence or character: terminals drop it."""
        if piece[:1] == b"\x1b":
            return not SEQUENCE.match(piece.decode("latin-1"))
        return piece[0] >= 0x80 and len(piece) < 2 + (piece[0] >= 0xe0) + (piece[0] >= 0xf0)

    # ---- the person ----

    def until(self, condition, what="", seconds=60):
        """Look at the screen until condition(lines) is true; what it then is."""
        deadline = time.monotonic() + seconds
        while not (found := condition(self.lines)):
            assert time.monotonic() < deadline, f"{what}:\n{self}"
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.take(os.read(self.fd, 65536))
                except OSError:
                    raise AssertionError(f"the program has ended; {what}:\n{self}") from None
        return found

    def until_shown(self, text, seconds=60):
        return self.until(lambda lines: next((line for line in lines if text in line), None),
                          f"'{text}' is not shown", seconds)

    def until_line(self, pattern, seconds=60):
        """Until a line matches; the match."""
        return self.until(lambda lines: next((found for line in lines
                                              if (found := re.search(pattern, line))), None),
                          f"nothing matches {pattern}", seconds)

    def until_hidden(self, text):
        self.until(lambda lines: all(text not in line for line in lines), f"'{text}' is shown")

    def leave(self, key):
        """Press it, and read to the end: the exit status, with the terminal as it was."""
        self.send(key)
        return self.see_end()

    def see_end(self, seconds=60):
        deadline = time.monotonic() + seconds
        while True:
            assert time.monotonic() < deadline, f"the program does not end:\n{self}"
            if not select.select([self.fd], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            self.take(data)
        assert not self.is_alternate and self.has_cursor and not self.is_raw, self.text[-200:]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
