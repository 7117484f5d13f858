# SPDX-License-Identifier: Apache-2.0
"""Tables of lines and what Python itself reads in them, of every function in some modules. For each two lines:
FIRST TABLE-IN-HEX, then START:END:LINE ... (bytes of bytecode; line 0: none)."""
import argparse
import ast
import collections
import dis
import sys


def codes(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from codes(constant)


def lines(code):
    if hasattr(code, "co_lines"):
        return [(start, end, line or 0) for start, end, line in code.co_lines()]
    starts = list(dis.findlinestarts(code))
    ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
    return [(start, end, line) for (start, line), end in zip(starts, ends)]


# All sorts of gaps: many lines in one expression, none for long, statements that go back.
ODD = "def f(a):\n    x = (a +\n" + "\n" * 300 + "         a)\n    for i in (1,\n 2):\n        y = [i\n  for j in\n\n\n   a]\n"
ODD += "    try:\n        pass\n    finally:\n        x = 1\n" + "    x = a\n" * 400

sources = [compile(ODD, "odd", "exec")]
for module in (argparse, ast, collections, dis):
    with open(module.__file__, encoding="utf-8") as file:
        sources.append(compile(file.read(), module.__file__, "exec"))
for source in sources:
    for code in codes(source):
        table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
        sys.stdout.write("%d %s\n%s\n" % (code.co_firstlineno, table.hex() or "-",
                                          " ".join("%d:%d:%d" % line for line in lines(code))))
