"""Runs a command in a terminal of its own and prints every byte that it wrote there.

usage: capture.py COLUMNS LINES COMMAND...
"""

import fcntl
import os
import pty
import signal
import struct
import sys
import termios


def main():
    columns, lines, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
        for descriptor in range(3):
            os.dup2(follower, descriptor)
        os.close(leader)
        # A shell that runs tests in the background makes them ignore these signals.
        for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_DFL)
        os.execvp(command[0], command)
    os.close(follower)
    written = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:
            break
        if not data:
            break
        written += data
    os.waitpid(child, 0)
    sys.stdout.buffer.write(written.replace(b"\r\n", b"\n"))


main()
