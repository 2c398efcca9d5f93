# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own, and what stands on that: enough of a terminal for TERM=linux."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

PATIENCE = 60
SEQUENCE = re.compile(rb"\x1b\[(\??)([0-9;]*)([A-Za-z@`])|\x1b([()][A-Z0-9]|[=>78cDEHM])|\x1b\][^\x07]*\x07?")


class Screen:
    def __init__(self, command, env, columns=100, lines=24):
        self.raw = b""
        self.rest = b""
        self.resize_to(columns, lines)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # Not before its terminal has its size.
            os.read(0, 1)
            os.execvpe(command[0], command, env)
        self.set_size()
        os.write(self.fd, b"\n")
        self.status = None

    def resize_to(self, columns, lines):
        self.columns, self.lines = columns, lines
        self.cells = [[" "] * columns for _ in range(lines)]
        self.x = self.y = self.top = 0
        self.bottom = lines - 1

    def set_size(self):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.lines, self.columns, 0, 0))

    def resize(self, columns, lines):
        self.resize_to(columns, lines)
        self.set_size()

    def send(self, keys):
        os.write(self.fd, keys)

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)

    def line(self, y):
        return self.text().split("\n")[y]

    def until(self, found):
        """Reads until found(text of the screen) is true, and returns that; AssertionError at the end of patience or of the program."""
        end = time.monotonic() + PATIENCE
        while True:
            got = found(self.text())
            if got:
                return got
            if not self.read(end - time.monotonic()):
                raise AssertionError("not seen; the screen is:\n" + self.text())

    def read(self, patience):
        """False: there is no more."""
        if patience <= 0 or not select.select([self.fd], [], [], patience)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += data
        self.take(self.rest + data)
        return bool(data)

    def end(self):
        """Its exit status, as a shell counts."""
        if self.status is None:
            end = time.monotonic() + PATIENCE
            while self.read(end - time.monotonic()):
                pass
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self.fd)
        return self.status

    # ---- what a terminal does

    def take(self, data):
        self.rest = b""
        at = 0
        while at < len(data):
            if data[at] == 0x1b:
                m = SEQUENCE.match(data, at)
                if not m:
                    if len(data) - at > 32:
                        raise AssertionError("an unknown sequence: %r" % data[at:at + 32])
                    self.rest = data[at:]
                    return
                if m.group(3) and not m.group(1):
                    self.control(m.group(3).decode(), [int(n or 0) for n in m.group(2).split(b";")])
                elif m.group(4) == b"M" and self.y == self.top:
                    self.scroll(-1)
                elif m.group(4) == b"M":
                    self.y = max(self.y - 1, 0)
                at = m.end()
                continue
            self.plain(chr(data[at]))
            at += 1

    def plain(self, c):
        if c == "\r":
            self.x = 0
        elif c == "\n" and self.y == self.bottom:
            self.scroll(1)
        elif c == "\n":
            self.y = min(self.y + 1, self.lines - 1)
        elif c == "\b":
            self.x = max(self.x - 1, 0)
        elif c == "\t":
            self.x = min(self.x // 8 * 8 + 8, self.columns - 1)
        elif c >= " ":
            if self.x == self.columns:
                self.x = 0
                self.y = min(self.y + 1, self.lines - 1)
            if self.y < self.lines:
                self.cells[self.y][self.x] = c
            self.x += 1

    def control(self, what, numbers):
        n = max(numbers[0], 1)
        if what in "Hf":
            self.y = min(max(numbers[0] - 1, 0), self.lines - 1)
            self.x = min(max((numbers + [0])[1] - 1, 0), self.columns - 1)
        elif what == "A":
            self.y = max(self.y - n, 0)
        elif what == "B":
            self.y = min(self.y + n, self.lines - 1)
        elif what == "C":
            self.x = min(self.x + n, self.columns - 1)
        elif what == "D":
            self.x = max(self.x - n, 0)
        elif what in "G`":
            self.x = min(n - 1, self.columns - 1)
        elif what == "d":
            self.y = min(n - 1, self.lines - 1)
        elif what == "J":
            if numbers[0] == 2:
                self.erase(0, 0)
            else:
                self.erase(self.y, self.x)
        elif what == "K":
            first, last = (0, self.x + 1) if numbers[0] == 1 else (self.x, self.columns)
            self.cells[self.y][first:last] = [" "] * (last - first)
        elif what == "X":
            for x in range(self.x, min(self.x + n, self.columns)):
                self.cells[self.y][x] = " "
        elif what == "b":
            c = self.cells[self.y][self.x - 1]
            for _ in range(n):
                self.plain(c)
        elif what == "P":
            line = self.cells[self.y]
            del line[self.x:self.x + n]
            line += [" "] * (self.columns - len(line))
        elif what == "@":
            line = self.cells[self.y]
            line[self.x:self.x] = [" "] * n
            del line[self.columns:]
        elif what == "r":
            self.top = max(numbers[0] - 1, 0)
            self.bottom = min(((numbers + [0])[1] or self.lines) - 1, self.lines - 1)
            self.x = self.y = 0
        elif what in "ST":
            self.scroll(n if what == "S" else -n)
        elif what in "LM":
            self.scroll(n if what == "M" else -n, self.y)

    def scroll(self, n, top=None):
        """Up, or down, the lines from `top` to the bottom of what scrolls."""
        top = self.top if top is None else top
        for _ in range(abs(n)):
            self.cells.pop(top if n > 0 else self.bottom)
            self.cells.insert(self.bottom if n > 0 else top, [" "] * self.columns)

    def erase(self, y, x):
        self.cells[y][x:] = [" "] * (self.columns - x)
        for line in range(y + 1, self.lines):
            self.cells[line] = [" "] * self.columns
