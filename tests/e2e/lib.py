# SPDX-License-Identifier: Apache-2.0
"""
What the scenarios share: starting and stopping `sconce`, reading its ledgers, comparing stacks.

The ledgers are read through /proc/PID/fd of the processes and stay mapped after they ended, so that the
books can be checked behind the drain, without asking the programs under test.
"""
import atexit
import json
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, f"{ROOT}/tests/tools")
import otlp_check  # noqa: E402
import wire  # noqa: E402

BUILD = os.environ.get("SCONCE_BUILD", f"{ROOT}/build")
SCONCE = f"{BUILD}/sconce"
WORKLOADS = f"{BUILD}/bench/workloads/c"
CHAIN = ["main", "chain_run"] + [f"chain_{c}" for c in "abcdefgh"] + ["chain_burn"]
FD_LEDGER = 5
PATIENCE = 4

_running = []
_directories = []


def skip(reason):
    print(reason)
    sys.exit(77)


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def directory():
    d = tempfile.TemporaryDirectory(prefix="e2e-", ignore_cleanup_errors=True)
    os.chmod(d.name, 0o755)
    _directories.append(d)
    return d.name


def wait_for(what, seconds, condition):
    """The first true value of condition(), asked until `seconds` of a quiet machine are over."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(0.05)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(command, **options):
    """Popen in a process group of its own, which is ended at exit whatever happens."""
    p = subprocess.Popen(command, start_new_session=True, **options)
    _running.append(p)
    return p


def signal_group(p, number):
    try:
        os.killpg(p.pid, number)
    except ProcessLookupError:
        pass


@atexit.register
def _end_all():
    for p in _running:
        tree = list(process_tree(p.pid))
        signal_group(p, signal.SIGKILL)
        for pid in tree:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            p.wait(10)
        except subprocess.TimeoutExpired:
            pass


def workload(name, *args, **options):
    return start([f"{WORKLOADS}/{name}", *map(str, args)], **options)


def own(name):
    """A copy of the workload under a name of its own: others of the machine may run it too."""
    path = f"{directory()}/{name}-{os.getpid()}"
    shutil.copy(f"{WORKLOADS}/{name}", path)
    return path


# Processes.

def stat_fields(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()


def used(pid):
    """Seconds of CPU time, with those of its children that have ended."""
    return sum(map(int, stat_fields(pid)[11:15])) / os.sysconf("SC_CLK_TCK")


def work(pid, seconds):
    """Wait until the process has used so much CPU time, however slow the machine."""
    end = used(pid) + seconds
    wait_for(f"{seconds} s of CPU time", 30, lambda: used(pid) >= end)


def process_tree(root):
    """pids of everything below root, zombies left out."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = stat_fields(entry)
            except OSError:
                continue
            if fields[0] not in "ZX":
                parents[int(entry)] = int(fields[1])
    found, todo = [], [root]
    while todo:
        p = todo.pop()
        children = [c for c, pp in parents.items() if pp == p]
        found += children
        todo += children
    return found


def roles(root):
    """{(role, slot): pid} of the processes of Sconce below root."""
    out = {}
    for pid in process_tree(root):
        try:
            exe = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                args = f.read().split(b"\0")
        except OSError:
            continue
        # In the middle of execve a process has its program, but its arguments not yet.
        if exe.startswith("sconce-") and args[0]:
            slot = int(args[1]) if len(args) > 1 and args[1].isdigit() else -1
            out[(exe[7:], slot)] = pid
    return out


# Ledgers.

def _header(path):
    with open(f"{ROOT}/{path}") as f:
        return f.read()


def _define(text, name):
    return int(re.search(rf"#define {name} (\d+)", text).group(1))


_ledger_h = _header("shm/ledger.h")
COUNTERS = re.findall(r"^\s*COUNTER\((\w+), (\w+), (SUM|GAUGE), \"", _header("shm/counters.h"), re.M)
COUNTER_ROOM = _define(_ledger_h, "LEDGER_COUNTERS")
ENTRY_BYTES = 8 * (COUNTER_ROOM + _define(_ledger_h, "LEDGER_POSITIONS")
                   + _define(_ledger_h, "LEDGER_CPUS"))
LEDGER_BYTES = 4096 + 2 * ENTRY_BYTES


class Ledger:
    def __init__(self, pid):
        with open(f"/proc/{pid}/fd/{FD_LEDGER}", "rb") as f:
            self.inode = os.fstat(f.fileno()).st_ino
            self.map = mmap.mmap(f.fileno(), LEDGER_BYTES, prot=mmap.PROT_READ)

    def counters(self):
        while True:
            commits = struct.unpack_from("<Q", self.map)[0]
            at = 4096 + (commits & 1) * ENTRY_BYTES
            values = struct.unpack_from(f"<{len(COUNTERS)}Q", self.map, at)
            if struct.unpack_from("<Q", self.map)[0] == commits:
                return values


class Ledgers:
    """The ledgers of every process of one run; counters() sums over the workers."""

    def __init__(self, root):
        self.root, self.by_slot = root, {}
        self.update()

    def update(self):
        for (role, slot), pid in roles(self.root).items():
            # A process in the middle of its exec has no arguments yet.
            if role in ("supervisor", "loader", "cli") or slot < 0 or slot in self.by_slot:
                continue
            try:
                self.by_slot[slot] = (role, Ledger(pid))
            except (OSError, ValueError):
                pass  # not there yet, or gone already

    def counters(self):
        out = {name: 0 for name, _, _ in COUNTERS}
        for role, ledger in self.by_slot.values():
            for (name, owner, _), value in zip(COUNTERS, ledger.counters()):
                if owner.lower() == role:
                    out[name] += value
        return out


def lost(c):
    return sum(v for name, v in c.items() if name.startswith("lost_"))


def check_books(c, destination, arrived=None):
    """taken = lost + acknowledged + lost by destination + in doubt, with nothing waiting any more."""
    d = {k[len(destination) + 1:]: v for k, v in c.items() if k.startswith(f"{destination}_")}
    losses = {k: v for k, v in c.items() if v and (k.startswith("lost_") or
                                                   k.startswith(f"{destination}_lost_"))}
    right = lost(c) + d["acked"] + d["lost_spool_full"] + d["lost_rejected"] + d["in_doubt"] \
        + d["waiting"]
    print(f"{destination}: taken {c['taken']} = acked {d['acked']} + lost {losses or 0} "
          f"+ in doubt {d['in_doubt']} + waiting {d['waiting']}; arrived {arrived}")
    check(c["taken"] > 0, "nothing was taken")
    check(c["taken"] == right, f"the books do not balance: taken {c['taken']}, other side {right}: "
          + json.dumps({k: v for k, v in c.items() if v}))
    if arrived is not None:
        check(d["acked"] <= arrived <= d["acked"] + d["in_doubt"],
              f"arrived {arrived}, acknowledged {d['acked']}, in doubt {d['in_doubt']}")


# sconce run.

def environment(**extra):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("SCONCE_", "OTEL_", "PROFILES_", "SUDO_"))}
    env.update({k: str(v) for k, v in extra.items()})
    return env


class Node:
    """`sconce run` with sockets of its own; everything that is started here is ended by stop()."""

    def __init__(self, *args, env=None, wait=True, prefix=()):
        check(os.path.exists(SCONCE), f"{SCONCE} is not built")
        self.dir = directory()
        self.port = free_port()
        self.log = open(f"{self.dir}/log", "w+b")
        self.env = environment(SCONCE_RUN_DIR=f"{self.dir}/run",
                               SCONCE_LISTEN=f"127.0.0.1:{self.port}", **(env or {}))
        self.started = time.monotonic()
        self.started_boottime_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.process = start([*prefix, SCONCE, "run", *map(str, args)], env=self.env, stdin=subprocess.DEVNULL,
                             stdout=self.log, stderr=self.log)
        self.ledgers = Ledgers(self.process.pid)
        if wait:
            self.wait()

    def text(self):
        self.log.flush()
        with open(self.log.name, errors="replace") as f:
            return f.read()

    def wait(self, seconds=15):
        wanted = {"sampler", "broker", "exporter", "viewer", "symbolizer"}

        def up():
            check(self.process.poll() is None, f"sconce run ended: {self.text()[-3000:]}")
            self.ledgers.update()
            have = {role for role, _ in self.ledgers.by_slot.values()}
            return wanted <= have and self.counters()["symbolizer_symbolized"] > 0
        try:
            wait_for("samples through all processes", seconds, up)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.text()[-3000:]}\n{self.roles()}") from None

    def roles(self):
        return roles(self.process.pid)

    def counters(self):
        return self.ledgers.counters()

    def status(self):
        p = subprocess.run([SCONCE, "status", "--json"], env=self.env, capture_output=True, text=True,
                           timeout=60)
        check(p.returncode == 0, f"status: exit {p.returncode}: {p.stderr}")
        return json.loads(p.stdout)

    def stop(self, seconds=40):
        """Ctrl-C, as a terminal sends it: to all of the group. Returns the counters behind the drain."""
        self.ledgers.update()
        signal_group(self.process, signal.SIGINT)
        try:
            code = self.process.wait(PATIENCE * seconds)
        except subprocess.TimeoutExpired:
            check(False, f"does not end within {PATIENCE * seconds} s: {self.roles()}\n{self.text()[-3000:]}")
        check(code in (0, 130), f"exit code {code}: {self.text()[-3000:]}")
        return self.counters()


# sconce record.

def record(output, *args, command=None, env=None, timeout=100, ok=True):
    """Run to its end. CompletedProcess; with ok, its exit code has to be 0."""
    check(os.path.exists(SCONCE), f"{SCONCE} is not built")
    words = [SCONCE, "record", "-o", output, *map(str, args)]
    if command:
        words += ["--", *map(str, command)]
    p = start(words, env=environment(SCONCE_RUN_DIR=f"{directory()}/run", **(env or {})),
              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        check(False, f"{' '.join(words)}: still running after {timeout} s")
    if ok:
        check(p.returncode == 0, f"{' '.join(words)}: exit {p.returncode}: {out}{err}")
    return subprocess.CompletedProcess(words, p.returncode, out, err)


def record_work(output, pid, seconds, *args, begin=lambda: None):
    """Record, begin, and when the process has used so much CPU time, Ctrl-C."""
    p = start([SCONCE, "record", "-o", output, *map(str, args)], stdin=subprocess.DEVNULL,
              env=environment(SCONCE_RUN_DIR=f"{directory()}/run"))
    ledgers = Ledgers(p.pid)

    def up():
        check(p.poll() is None, f"sconce record ended: exit {p.returncode}")
        ledgers.update()
        c = ledgers.counters()
        return c["symbolizer_samples"] or c["filtered"]
    wait_for("samples", 15, up)
    begin()
    work(pid, seconds)
    p.send_signal(signal.SIGINT)
    code = p.wait(100)
    check(code in (0, 130), f"sconce record: exit {code}")


def doctor(*prefix):
    """(exit code, {name: (state, text)}, the last line)"""
    done = subprocess.run([*prefix, SCONCE, "doctor"], capture_output=True, text=True, timeout=60,
                          env=environment(SCONCE_RUN_DIR=f"{directory()}/run"))
    wide = [line for line in done.stdout.splitlines() if len(line) > 100]
    check(not wide, f"too wide: {wide}")
    # A row goes on below its third column.
    *lines, last = re.sub(r"\n {31}", " ", done.stdout).splitlines() or [""]
    rows = [re.match(r"(ok|less|FATAL) +(\S+(?: \S+)*?)  +(.*)", line) for line in lines]
    check(all(rows) and rows, f"a line that is none: {done.stdout}{done.stderr}")
    return done.returncode, {m[2]: (m[1], m[3]) for m in rows}, last


def read_folded(path):
    """[(comm, frames root first, count)]"""
    out = []
    with open(path, errors="strict") as f:
        for line in f:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            check(stack and count.isdigit() and int(count) > 0, f"not a folded line: {line!r}")
            comm, *frames = stack.split(";")
            out.append((comm, frames, int(count)))
    check(out, f"{path}: empty")
    return out


def contains(frames, chain):
    """The chain stands in the stack without a gap, in this order."""
    n = len(chain)
    return any(frames[i:i + n] == chain for i in range(len(frames) - n + 1))


def user_frames(frames):
    return [f for f in frames if not f.endswith("_[k]")]


def check_chain(stacks, chain=CHAIN, share=0.95, least=20):
    """stacks: [(frames, count)] of one program. The share that holds the chain, which has to suffice."""
    total = sum(n for _, n in stacks)
    good = sum(n for frames, n in stacks if contains(frames, chain))
    others = sorted(((n, ";".join(f)) for f, n in stacks if not contains(f, chain)), reverse=True)[:8]
    print(f"{good} of {total} samples hold {chain[0]};...;{chain[-1]}")
    check(total >= least, f"only {total} samples")
    check(good >= share * total, f"{good} of {total} samples hold the chain; others: {others}")


def main(function):
    if os.geteuid() != 0:
        skip("needs root")
    try:
        function()
    except AssertionError as error:
        print(f"FAILED: {error}")
        sys.exit(1)
    sys.exit(0)
