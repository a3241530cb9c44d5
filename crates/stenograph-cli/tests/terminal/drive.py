"""Runs a command in a terminal of its own, presses keys, and looks at the screen.

usage: drive.py STEPS COMMAND...

STEPS is a JSON list, done in order: ["see", TEXT] waits until it is on the screen, ["gone", TEXT] until it is not, ["type", KEYS],
["size", COLUMNS, LINES], ["signal", NAME], ["stops"] waits until it is suspended, ["append", FILE, TEXT],
["wait", SECONDS] without taking anything from it. What came of it is printed as one JSON object.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

PATIENCE_SECONDS = 60
CONTROL = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class Screen:
    """As much of a terminal as is needed to know what somebody would see."""

    def __init__(self, columns, lines):
        self.columns, self.lines = columns, lines
        self.rows, self.row, self.column = {}, 0, 0
        self.alternate, self.cursor, self.pending, self.plain, self.widest = False, True, "", "", 0
        self.colours = 0

    def feed(self, text):
        text = self.pending + text
        self.pending = ""
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\x1b":
                found = CONTROL.match(text, at)
                if not found:
                    if len(text) - at < 16:
                        self.pending = text[at:]
                        return
                    at += 1
                    continue
                self.control(*found.groups())
                at = found.end()
                continue
            at += 1
            if char == "\r":
                self.column = 0
            elif char == "\n":
                self.row += 1
                self.plain += char
            else:
                line = self.rows.get(self.row, "").ljust(self.column)
                self.rows[self.row] = line[: self.column] + char + line[self.column + 1 :]
                self.column += 1
                if self.alternate:
                    self.widest = max(self.widest, self.column)
                else:
                    self.plain += char

    def control(self, private, numbers, letter):
        if private and numbers == "1049":
            self.alternate = letter == "h"
            self.rows = {}
        elif private and numbers == "25":
            self.cursor = letter == "h"
        elif letter == "H":
            parts = [int(part or 1) for part in (numbers or "1;1").split(";")]
            self.row, self.column = parts[0] - 1, (parts + [1])[1] - 1
        elif letter == "K":
            # After a full line, the cursor of a terminal is still on its last column.
            column = min(self.column, self.columns - 1)
            self.rows[self.row] = self.rows.get(self.row, "")[:column]
        elif letter == "J":
            self.rows = {}
        elif letter == "m":
            self.colours += 1

    def text(self):
        return "\n".join(self.rows.get(row, "").rstrip() for row in range(self.lines))


def size(descriptor, columns, lines):
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def main():
    steps, command = json.loads(sys.argv[1]), sys.argv[2:]
    columns, lines = 80, 24
    leader, follower = pty.openpty()
    size(leader, columns, lines)
    before = termios.tcgetattr(follower)
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
        for descriptor in range(3):
            os.dup2(follower, descriptor)
        # A shell that runs tests in the background makes them ignore these signals.
        for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_DFL)
        os.execvp(command[0], command)
    screen = Screen(columns, lines)
    failed, stopped, modes = None, False, []

    def pump(seconds):
        ready, _, _ = select.select([leader], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(leader, 65536)
        except OSError:
            return False
        screen.feed(data.decode("utf-8", "replace"))
        return bool(data)

    def until(condition):
        deadline = time.time() + PATIENCE_SECONDS
        while not condition():
            pump(0.02)
            if time.time() > deadline:
                return False
        return True

    for step in steps:
        what, rest = step[0], step[1:]
        done = True
        if what == "see":
            done = until(lambda: rest[0] in screen.text())
        elif what == "gone":
            done = until(lambda: rest[0] not in screen.text())
        elif what == "type":
            os.write(leader, rest[0].encode())
        elif what == "size":
            screen.columns, screen.lines = rest
            # Whatever is drawn again is drawn anew, and what was seen before does not count.
            screen.rows, screen.widest = {}, 0
            size(leader, *rest)
        elif what == "signal":
            os.kill(child, getattr(signal, "SIG" + rest[0]))
        elif what == "stops":
            def has_stopped():
                found, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED)
                return found == child and os.WIFSTOPPED(status)

            done = until(has_stopped)
            while pump(0.05):
                pass
            modes.append(termios.tcgetattr(follower)[:4] == before[:4] and not screen.alternate and screen.cursor)
        elif what == "wait":
            time.sleep(rest[0])
        elif what == "append":
            with open(rest[0], "a") as file:
                file.write(rest[1])
        if not done:
            failed = f"{step}: the screen is\n{screen.text()}"
            os.kill(child, signal.SIGKILL)
            break
    deadline, status = time.time() + PATIENCE_SECONDS, None
    while status is None and time.time() < deadline:
        pump(0.02)
        found, wait = os.waitpid(child, os.WNOHANG)
        if found == child:
            status = os.waitstatus_to_exitcode(wait)
    if status is None:
        failed = failed or "it does not end"
        os.kill(child, signal.SIGKILL)
    while pump(0.05):
        pass
    after = termios.tcgetattr(follower)
    print(json.dumps({
        "failed": failed,
        "code": status,
        "restored": after[:4] == before[:4] and not screen.alternate and screen.cursor,
        "restored_when_stopped": modes,
        "said": screen.plain,
        "widest": screen.widest,
        "colours": screen.colours,
    }))


main()
