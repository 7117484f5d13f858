# SPDX-License-Identifier: Apache-2.0
"""Stacks of CPython with a known answer: chain.py MODE. It says what it is going to do (tell.py), then it
burns CPU in the last function until it is killed, or for SECONDS of CPU where that is in the environment.
Runs with 3.6 and everything after it."""
import functools
import os
import re
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tell import clock, tell, until  # noqa: E402
import parts  # noqa: E402


class Base:
    def __init__(self, end):
        self.end = end

    def method(self, depth):
        return self.bound(depth)

    @classmethod
    def made(cls, end):
        return cls(end).method(3)


class Derived(Base):
    def bound(self, depth):
        return parts.recursion(depth, self.closure())

    def closure(self):
        seen = []

        def inner(x):
            seen.append(x)
            return parts.callbacks(
                [2, 1],
                lambda y: self.last(y))
        return inner

    def last(self, y):
        return self.end(y)


# Leaves: each is the end of a chain, tells and burns in itself.
def leaf_plain(x):
    tell()
    total = 0
    while clock() < until:
        for i in range(200):
            total += i ^ x
            total &= 0xffffff
    return total


def leaf_handler(x):
    """In an except clause, with the traceback of what was raised still there, and a finally on the way."""
    try:
        parts.raises(x)
    except ValueError as error:
        tell()
        while clock() < until:
            for i in range(200):
                x = (x + len(error.args)) & 0xffff
    finally:
        x = 0
    return x


def leaf_native(x):
    """Mostly in C: regular expressions, sorting, formatting."""
    pattern = re.compile("a+")
    tell()
    while clock() < until:
        sorted(range(200), key=abs)
        pattern.sub("b", "caab" * 50)
        "%s %d" % ("x" * 100, x)
    return x


def leaf_generator(x):
    for y in parts.outer_generator(x, leaf_plain):
        pass
    return y


def leaf_re(x):
    def replace(match):
        return str(leaf_plain(len(match.group())))
    return re.sub("b+", replace, "abba")


def main_chain():
    return Derived.made(leaf_plain)


def main_handler():
    return Derived.made(leaf_handler)


def main_native():
    return Derived.made(leaf_native)


def main_generator():
    return Derived.made(leaf_generator)


def main_callback():
    return Derived.made(leaf_re)


def main_reduce():
    return functools.reduce(lambda a, b: Derived.made(leaf_plain), [1, 2])


def main_deep():
    return parts.recursion(80, lambda x: leaf_plain(x))


def main_names():
    return parts.foreign_names(leaf_plain)


def main_made():
    return parts.through_made_code(leaf_plain)


def main_async():
    return parts.run_async(leaf_plain)


def in_thread():
    return Derived.made(leaf_plain)


def main_threads():
    threads = [threading.Thread(target=in_thread, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main_sub():
    parts.run_sub("import sys; sys.argv = ['chain.py']; sys.path.insert(0, %r); "
                  "import chain; chain.main_chain()" % os.path.dirname(os.path.abspath(__file__)))


MODES = {name[5:]: function for name, function in list(globals().items()) if name.startswith("main_")}

if __name__ == "__main__":
    MODES[sys.argv[1]]()
