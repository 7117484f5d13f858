# SPDX-License-Identifier: Apache-2.0
"""Who calls tell() is the last function of its chain: all of it is written to stdout as Python itself knows it, in
the lines that tests/lang/check.h reads. Then it burns while clock() < until, which calls nothing but C."""
import dis
import os
import sys
import time

until = float(os.environ.get("SECONDS", "1e9"))
clock = time.process_time
told = False


def last_line(code):
    return max(line for _, line in dis.findlinestarts(code) if line)


def tell():
    global told
    frame, lines = sys._getframe(1), []
    while frame:
        code = frame.f_code
        lines.append("frame\t%s\t%s\t%d\t%d\t%d" % (
            getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno,
            code.co_firstlineno, last_line(code)))
        frame = frame.f_back
    if not told:
        told = True
        sys.stdout.buffer.write(("\n".join(reversed(lines)) + "\nready\n").encode())
        sys.stdout.flush()
