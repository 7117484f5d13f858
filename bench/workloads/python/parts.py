# SPDX-License-Identifier: Apache-2.0
"""The other half of chain.py's functions."""
import functools


def recursion(depth, function):
    if depth == 0:
        return function(depth)
    return recursion(depth - 1, function)


def callbacks(items, function):
    """C calls back twice: out of sorted() and out of reduce()."""
    def key(x):
        return functools.reduce(lambda a, b: function(x), [1, 2])
    return sorted(items, key=key)


def raises(x):
    try:
        raise KeyError(x)
    except KeyError as error:
        raise ValueError(x) from error


def inner_generator(x, function):
    for i in range(3):
        yield i
    yield function(x)


def outer_generator(x, function):
    yield from inner_generator(x, function)


def foreign_names(function):
    """Names that are not ASCII, of one, two and four bytes a character, in a file that is not there."""
    names = {}
    source = ("def caf\u00e9(f):\n    return \u03b1\u03b2\u03b3(f)\n"
              "def \u03b1\u03b2\u03b3(f):\n    return \U00020000\u4e00(f)\n"
              "def \U00020000\u4e00(f):\n    x = 1\n\n\n    return f(x)\n")
    exec(compile(source, "d\u00e9j\u00e0/\u0444\u0430\u0439\u043b.py", "exec"), names)
    return names["caf\u00e9"](function)


def through_made_code(function):
    """Machine code in memory of its own, with a frame pointer: it calls back what it is given."""
    import ctypes
    import mmap
    code = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                     prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\x55\x48\x89\xe5\xff\xd7\x5d\xc3")  # push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
    start = ctypes.addressof(ctypes.c_char.from_buffer(code))

    def called_back():
        function(1)
    callback = ctypes.CFUNCTYPE(None)(called_back)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(start)(ctypes.cast(callback, ctypes.c_void_p))


def run_async(function):
    import asyncio

    async def innermost(x):
        return function(x)

    async def between(x):
        await asyncio.sleep(0)
        return await innermost(x)

    async def outermost():
        return [await asyncio.ensure_future(between(1))]

    loop = asyncio.new_event_loop()
    return loop.run_until_complete(outermost())


def run_sub(script):
    try:
        import _interpreters
        _interpreters.exec(_interpreters.create(), script)
    except ImportError:
        import _xxsubinterpreters
        _xxsubinterpreters.run_string(_xxsubinterpreters.create(), script)
