# SPDX-License-Identifier: Apache-2.0
"""
What a process of each role may hold, to the bit, and how that is compared with what the kernel says of it
in /proc/PID/status. tests/e2e/30-capabilities proves that the comparison sees one bit more and one less.
"""
import re

import lib

UID_BASE = 61000
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
# Those of the header that the kernel knows as well.
with open("/usr/include/linux/capability.h") as _header, open("/proc/sys/kernel/cap_last_cap") as _last:
    _known = int(_last.read())
    NUMBERS = {m[1].lower(): int(m[2]) for m in re.finditer(r"^#define CAP_(\w+)\s+(\d+)$", _header.read(), re.M)
               if int(m[2]) <= _known}
HELD = {"loader": ("bpf", "perfmon"), "broker": ("sys_ptrace", "checkpoint_restore", "dac_read_search")}


def mask(*names):
    return sum(1 << NUMBERS[name] for name in names)


def wanted(role, without=()):
    """The capabilities of a role, where the agent lacks some."""
    return mask(*(name for name in HELD.get(role, ()) if name not in without))


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def names(bits):
    return [name for name, n in NUMBERS.items() if bits >> n & 1] or ["none"]


def differences(s, want, uid):
    """What is other than it has to be, in words; [] when all is exact."""
    out = [f"{k} is {','.join(names(int(s[k], 16)))}, not {','.join(names(want))}" for k in SETS if int(s[k], 16) != want]
    out += [f"{k} {s[k]!r}, not {uid}" for k in ("Uid", "Gid") if s[k].split() != [str(uid)] * 4]
    out += [f"Groups {s['Groups']}"] if s["Groups"].strip() else []
    return out + ([] if s["NoNewPrivs"] == "1" else ["no_new_privs is not set"])


def check(role, slot, pid, without=()):
    want, uid = wanted(role, without), UID_BASE + slot
    wrong = differences(status(pid), want, uid)
    print(f"{role}, slot {slot}: uid {uid}, all five sets {','.join(names(want))}" if not wrong else f"{role}: {wrong}")
    lib.check(not wrong, f"{role}: {wrong}")
