# SPDX-License-Identifier: Apache-2.0
"""
Machines that give less, for the scenarios: each is a prefix for a command, or a block in which a sysctl
says something else. What a prefix changes nobody else sees; a sysctl is put back whatever happens to us.

    narrow.py CALL[:ARGUMENT:BITS]=ERROR ... -- command ...    the command, with these calls refused

is how a seccomp profile around us looks from inside (ARGUMENT counts from 0; any of BITS set is refused).
"""
import contextlib
import ctypes
import errno
import fcntl
import os
import struct
import subprocess
import sys
import time

LOCK = "/tmp/sysctl.lock"
CALLS = {"ioctl": 16, "clone": 56, "prctl": 157, "unshare": 272, "memfd_create": 319, "io_uring_setup": 425,
         "clone3": 435, "landlock_create_ruleset": 444}  # x86_64
CLONE_NEW_ANY = 0x7e020000
PROCMAP_QUERY = 0xc0686611
# As the kernel answers where user.max_*_namespaces are 0.
NO_NAMESPACES = [f"clone:0:{CLONE_NEW_ANY}=ENOSPC", f"unshare:0:{CLONE_NEW_ANY}=ENOSPC"]
# A kernel of 2022 in a container with the usual profile.
OLD_CONTAINER = ["io_uring_setup=ENOSYS", "clone3=ENOSYS", "landlock_create_ruleset=ENOSYS", "memfd_create:1:8=EINVAL",
                 f"clone:0:{CLONE_NEW_ANY}=EPERM", f"unshare:0:{CLONE_NEW_ANY}=EPERM", f"ioctl:1:={PROCMAP_QUERY}=ENOTTY",
                 "prctl:0:=65=EINVAL", "prctl:0:=66=EINVAL"]


def without(*capabilities):
    drop = ",".join(f"-{c}" for c in capabilities)
    return ["setpriv", "--bounding-set", drop, "--inh-caps", drop]


def mounts(script, *flags):
    """In a mount namespace of its own, behind these mount commands."""
    return ["unshare", "-m", *flags, "sh", "-ec", script + '\nexec "$@"', "sh"]


def refusing(*rules):
    return [sys.executable, "-B", os.path.abspath(__file__), *rules, "--"]


# What writes the old values back when its input ends: with us, or before.
KEEPER = """import sys
old = [(p, open(p).read()) for p in sys.argv[2:]]
try:
    for path, _ in old:
        with open(path, "w") as f:
            f.write(sys.argv[1])
    print("set", flush=True)
    sys.stdin.read()
finally:
    for path, text in old:
        try:
            open(path, "w").write(text)
        except OSError:
            pass
"""


@contextlib.contextmanager
def sysctl(value, *names):
    """Yields False where this kernel does not have them all, or does not let us."""
    paths = ["/proc/sys/" + name.replace(".", "/") for name in names]
    if not all(os.access(p, os.W_OK) for p in paths):
        yield False
        return
    with open(LOCK, "w") as lock:
        end = time.monotonic() + 120
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        # Not in our process group: it has to outlive whoever ends us.
        keeper = subprocess.Popen([sys.executable, "-c", KEEPER, str(value), *paths], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            yield keeper.stdout.readline() == b"set\n"
        finally:
            keeper.communicate(timeout=20)


def _rule(text):
    """BPF of one rule; a call that does not match falls through."""
    call, _, error = text.rpartition("=")
    name, argument, bits = (call.split(":") + [None, None])[:3]
    load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06
    refuse = [(give, 0, 0, 0x00050000 | getattr(errno, error))]
    if argument is not None:
        jump = (equal, int(bits[1:])) if bits.startswith("=") else (any_bit, int(bits))
        refuse = [(load, 0, 0, 16 + 8 * int(argument)), (jump[0], 0, 1, jump[1])] + refuse
    return [(load, 0, 0, 0), (equal, 0, len(refuse), CALLS[name])] + refuse


def _refuse(rules):
    program = [op for rule in rules for op in _rule(rule)] + [(0x06, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *op) for op in program))
    header = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(22, 2, ctypes.c_char_p(header), 0, 0):  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    at = sys.argv.index("--")
    _refuse(sys.argv[1:at])
    os.execvp(sys.argv[at + 1], sys.argv[at + 1:])
