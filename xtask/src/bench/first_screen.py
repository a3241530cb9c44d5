"""Prints how many milliseconds a command takes to fill its first screen of a terminal, for each round.

usage: first_screen.py ROUNDS LINES COMMAND...
"""

import fcntl
import os
import pty
import struct
import sys
import termios
import time


def first_screen(lines, command):
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80, 0, 0))
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.setsid()
        for descriptor in range(3):
            os.dup2(follower, descriptor)
        os.close(leader)
        os.execvp(command[0], command)
    os.close(follower)
    seen, taken = 0, None
    while taken is None:
        try:
            data = os.read(leader, 65536)
        except OSError:
            data = b""
        seen += data.count(b"\n")
        if seen >= lines - 1 or not data:
            taken = time.perf_counter() - start
    os.close(leader)
    try:
        os.kill(child, 9)
    except ProcessLookupError:
        pass
    os.waitpid(child, 0)
    return taken * 1000


for _ in range(int(sys.argv[1])):
    print(f"{first_screen(int(sys.argv[2]), sys.argv[3:]):.3f}")
