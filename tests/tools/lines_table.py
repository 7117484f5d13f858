#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Functions, files, lines and inlined frames at random addresses of many programs, beside llvm-symbolizer, libdw and, for
Go, `go tool addr2line`: the table of bench/README.md.

usage: tests/tools/lines_table.py [-n PLACES] [-d DIR] [--go RELEASE ...] [--debian PACKAGE:FILE[:DEBUG] ...] [NAME ...]

Programs are made in DIR (~/.cache/sconce/lines), once, from sources that are here: by gcc and clang, DWARF 4 and 5, packed, split, with
types in sections of their own, by dwz, optimized when they are linked; in C, C++ and Rust. Of Debian's C library the debug
files are taken that are installed (libc6-dbg); what --debian names is downloaded and unpacked into DIR. Go's releases are
those that the go command has fetched, or fetches. NAME: only programs whose name begins like that.

What each kind of difference is, tests/symbolizer/dwarf_others_test.c and tests/tools/go_lines.py say. Exit code 1: there
is one without a reason.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SCONCE_BUILD", f"{ROOT}/build")
SECONDS = 300  # a dwp that does not end; machines have other work too
CXX = f"{ROOT}/tests/symbolizer/dwarf_cxx.cc"
CXX_MORE = """
#include <regex>
#include <sstream>
#include <unordered_map>
int more(const char *text)
{
	std::unordered_map<std::string, std::vector<int>> table;
	std::istringstream words{text};
	std::regex form("([a-z]+)[0-9]*(x|y)?", std::regex::icase);
	for (std::string word; words >> word;) {
		std::smatch match;
		if (std::regex_match(word, match, form))
			table[match[1]].push_back(int(match.size()));
	}
	return int(table.size());
}
"""
RUST = f"{ROOT}/bench/workloads/unwind/rust.rs"
# Of releases whose tables differ.
GO = ["go1.9.7", "go1.11.13", "go1.15.15", "go1.17.13", "go1.18.10", "go1.20.14", "go1.21.13", "go1.23.12", "go1.25.3",
      "go1.27.0"]
DEBIAN = ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"]


def run(*command, quiet=False, **options):
    options = {"timeout": SECONDS, **options}
    try:
        p = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", **options)
    except subprocess.TimeoutExpired:
        p = subprocess.CompletedProcess(command, 124, "", f"not done in {options['timeout']} s")
    if p.returncode and not quiet:
        print(f"{' '.join(map(str, command))}: {(p.stdout + p.stderr).strip()[-600:]}", file=sys.stderr)
    return p


def code(path):
    out = f"{path}.text"
    run("objcopy", "-O", "binary", "-j", ".text", path, out)
    with open(out, "rb") as f:
        data = f.read()
    os.unlink(out)
    return data


class Programs:
    """All in one folder, so that .dwo files are where they are looked for."""

    def __init__(self, directory, wanted):
        self.dir, self.wanted, self.made = directory, wanted, {}
        os.makedirs(directory, exist_ok=True)

    def wants(self, name):
        return not self.wanted or any(name.startswith(w) for w in self.wanted)

    def have(self, name, path=None):
        """It was made by a run before this one."""
        path = path or f"{self.dir}/{name}/{name}"
        if os.path.exists(path):
            self.made[name] = path
        return os.path.exists(path)

    def folder(self, name):
        path = f"{self.dir}/{name}"
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        return path

    def keep(self, name, path, done=True):
        if done and os.path.exists(path):
            self.made[name] = path
        else:
            print(f"({name} cannot be made here)")

    def c(self, name, compiler):
        """One of ours, of some thirty files."""
        if self.have(name):
            return
        folder = self.folder(name)
        done = run("make", "-s", "-j2", "-C", ROOT, f"BUILD={folder}", f"CC={compiler}", f"{folder}/bench/find-lines",
                   env={k: v for k, v in os.environ.items() if k != "MAKEFLAGS"})
        path = f"{folder}/{name}"
        if done.returncode == 0:
            os.rename(f"{folder}/bench/find-lines", path)
        for part in glob.glob(f"{folder}/**/*.dwo", recursive=True):
            os.symlink(part, f"{folder}/{os.path.basename(part)}")
        self.keep(name, path, done.returncode == 0)
        self.whole(name, name.removesuffix("-dwo"))

    def whole(self, name, of):
        """
        Of split units that are many llvm-symbolizer 14 loses some: they go on with the line of what is inlined and
        the function it is in. So it is asked about the program that is the same but not split.
        """
        if name != of and name in self.made and of in self.made and code(self.made[name]) == code(self.made[of]):
            os.symlink(self.made[of], f"{self.made[name]}.original")

    def cxx(self, name, compiler):
        if self.have(name):
            return
        folder = self.folder(name)
        with open(f"{folder}/more.cc", "w") as f:
            f.write(CXX_MORE)
        for source in (CXX, "more.cc"):
            run(*compiler.split(), "-O2", "-w", f"-I{ROOT}", "-c", source, cwd=folder)
        done = run(*compiler.split(), "-o", name, "dwarf_cxx.o", "more.o", cwd=folder)
        self.keep(name, f"{folder}/{name}", done.returncode == 0)

    def rust(self, name, *flags):
        if self.have(name):
            return
        rustc = shutil.which("rustc") or os.path.expanduser("~/.cargo/bin/rustc")
        folder = self.folder(name)
        done = os.path.exists(rustc) and run(rustc, "-g", "-O", *flags, "-o", name, RUST, cwd=folder).returncode == 0
        self.keep(name, f"{folder}/{name}", done)

    def package(self, name, of, tool):
        """The parts of a program as one file."""
        if self.have(name) or of not in self.made:
            return
        path = self.made[of]
        done = run(tool, "-e", path, "-o", f"{path}.package", cwd=os.path.dirname(path))
        folder = self.folder(name)
        if done.returncode == 0:
            shutil.copy(path, f"{folder}/{name}")
            os.rename(f"{path}.package", f"{folder}/{name}.dwp")
        self.keep(name, f"{folder}/{name}", done.returncode == 0)
        if of.startswith("C-"):
            self.whole(name, name.removesuffix("-dwp"))

    def packed(self, name, of, how):
        if self.have(name) or of not in self.made:
            return
        folder = self.folder(name)
        done = run("objcopy", f"--compress-debug-sections={how}", self.made[of], f"{folder}/{name}")
        # Neither LLVM 14 nor libdw 0.188 knows zstd.
        if how == "zstd":
            os.symlink(self.made[of], f"{folder}/{name}.original")
        self.keep(name, f"{folder}/{name}", done.returncode == 0)

    def dwz(self, name, *of):
        """What several have in common is a file of its own."""
        if any(o not in self.made for o in of) or all(
                self.have(f"{name} {o}", f"{self.dir}/{name}/{o}") for o in of):
            return
        folder = self.folder(name)
        for o in of:
            shutil.copy(self.made[o], f"{folder}/{o}")
        done = run("dwz", "-m", "alt", *of, cwd=folder)
        for o in of:
            os.symlink("alt", f"{folder}/{o}.alt")
            os.symlink(self.made[o], f"{folder}/{o}.original")
            self.keep(f"{name} {o}", f"{folder}/{o}", done.returncode == 0)

    def stripped(self, name, path, debug):
        """By its debug file, which is where its build id says; the others have both in one."""
        if self.have(name, f"{self.dir}/{name}/{os.path.basename(path)}"):
            return
        folder = self.folder(name)
        copy = f"{folder}/{os.path.basename(path)}"
        shutil.copy(os.path.realpath(path), copy)
        done = run("eu-unstrip", "-f", "-o", f"{copy}.original", copy, debug)
        self.keep(name, copy, done.returncode == 0)


def build_id(path):
    return run("readelf", "-n", path).stdout.partition("Build ID: ")[2].split()[0]


def debian(programs, packages):
    for name in DEBIAN:
        path = f"/lib/x86_64-linux-gnu/{name}"
        ident = build_id(path) if programs.wants(f"Debian {name}") and os.path.exists(path) else ""
        debug = f"/usr/lib/debug/.build-id/{ident[:2]}/{ident[2:]}.debug"
        if ident and os.path.exists(debug):
            programs.stripped(f"Debian {name}", path, debug)
        elif ident:
            print(f"(Debian {name}: libc6-dbg is not installed)")
    for package in packages:
        of, path, debug = f"{package}:".split(":")[:3]
        name = f"Debian {os.path.basename(path)}"
        if not programs.wants(name):
            continue
        if programs.have(name, os.path.realpath(f"{programs.dir}/debian-{of}/{path}")):
            continue
        root = programs.folder("debian-" + of)
        run("apt-get", "-qq", "download", of, *debug.split(), cwd=root)
        for deb in glob.glob(f"{root}/*.deb"):
            run("dpkg", "-x", deb, root)
        path = os.path.realpath(f"{root}/{path}")
        if not debug:
            programs.keep(name, path)
            continue
        ident = build_id(path) if os.path.exists(path) else ""
        debug = f"{root}/usr/lib/debug/.build-id/{ident[:2]}/{ident[2:]}.debug"
        if os.path.exists(debug):
            # Its debug file stays where it is, above it.
            done = run("eu-unstrip", "-f", "-o", f"{path}.original", path, debug)
            programs.keep(name, path, done.returncode == 0)
        else:
            print(f"({name}: {of} and {debug} do not fit together)")


def make(programs):
    for version in (4, 5):
        for cc in ("gcc", "clang"):
            programs.c(f"C-{cc}-DWARF{version}", f"{cc} -gdwarf-{version}")
            programs.cxx(f"C++-{cc}-DWARF{version}", f"{cc.replace('gcc', 'g')}++ -gdwarf-{version}")
            programs.c(f"C-{cc}-DWARF{version}-dwo", f"{cc} -gdwarf-{version} -gsplit-dwarf")
            programs.cxx(f"C++-{cc}-DWARF{version}-dwo", f"{cc.replace('gcc', 'g')}++ -gdwarf-{version} -gsplit-dwarf")
    for version in (4, 5):
        programs.cxx(f"C++-gcc-DWARF{version}-types", f"g++ -gdwarf-{version} -fdebug-types-section")
        programs.cxx(f"C++-clang-DWARF{version}-types", f"clang++ -gdwarf-{version} -fdebug-types-section")
    programs.cxx("C++-gcc-DWARF4-types-dwo", "g++ -gdwarf-4 -fdebug-types-section -gsplit-dwarf")
    programs.c("C-gcc-DWARF5-lto", "gcc -gdwarf-5 -flto")
    # That of binutils 2.40 falls over DWARF 5, and that of LLVM 14 does not end over GCC's.
    for of, tool in (("C-gcc-DWARF4-dwo", "dwp"), ("C++-gcc-DWARF4-dwo", "dwp"), ("C-clang-DWARF5-dwo", "llvm-dwp"),
                     ("C++-clang-DWARF5-dwo", "llvm-dwp")):
        programs.package(of.replace("dwo", "dwp"), of, tool)
    programs.packed("C-gcc-DWARF5-zlib", "C-gcc-DWARF5", "zlib")
    programs.packed("C++-clang-DWARF4-zlib-gnu", "C++-clang-DWARF4", "zlib-gnu")
    programs.packed("C++-gcc-DWARF5-zstd", "C++-gcc-DWARF5", "zstd")
    programs.dwz("dwz-C", "C-gcc-DWARF4", "C-gcc-DWARF5")
    programs.dwz("dwz-C++", "C++-gcc-DWARF4", "C++-gcc-DWARF5")
    for version in (4, 5):
        programs.rust(f"Rust-DWARF{version}", f"-Cdwarf-version={version}")
    programs.rust("Rust-DWARF5-dwo", "-Cdwarf-version=5", "-Csplit-debuginfo=unpacked")


def text_kb(path):
    found = re.search(r" \.text +\w+ +\w+ +\w+ +(\w+)", run("readelf", "-SW", path).stdout)
    return int(found.group(1), 16) / 1024


SUMMARY = re.compile(r"^\S.* against (\S+): (\d+) addresses, (\d+) with inlined frames(.*)$", re.M)


def row(name, kb, against, places, inlined, counts):
    same, nobody, different = (counts.pop(k, 0) for k in ("same", "nobody knows", "different"))
    explained = ", ".join(f"{kind} {n}" for kind, n in counts.items())
    print(f"| {name} | {kb:,.0f} | {against} | {places} | {inlined} | {same} | {nobody or ''} | {explained} | {different} |",
          flush=True)
    return different


def native(name, path, n):
    p = run(f"{BUILD}/tests/symbolizer/dwarf_others_test", "-n", n, path, quiet=True, timeout=12 * SECONDS)
    out = p.stdout + p.stderr
    found = SUMMARY.findall(out)
    bad = p.returncode != 0 or not found
    for against, places, inlined, rest in found:
        counts = {k: int(v) for k, v in re.findall(r", ([a-z ]+) (\d+)", rest)}
        bad |= row(name, text_kb(path), against, places, inlined, counts) > 0
    if bad:
        print(out[-3000:], file=sys.stderr)
    return bad


def go(release, n):
    programs = [f"{BUILD}/bench/workloads/go/{release}/go-lines{bare}" for bare in ("", "-bare")]
    made = run("make", "-s", "-C", ROOT, f"BUILD={os.path.relpath(BUILD, ROOT)}", f"GO_RELEASES={release}",
               *[os.path.relpath(p, ROOT) for p in programs])
    if made.returncode:
        print(f"({release} cannot be had here)")
        return False
    p = run(sys.executable, f"{ROOT}/tests/tools/go_lines.py", "-n", n, f"{BUILD}/tests/symbolizer/golines_test",
            *programs, quiet=True, timeout=12 * SECONDS)
    inlined = re.search(r"(\d+) in inlined", p.stdout)
    for against, rest in re.findall(r"^([^/(\n]+): ((?:\d+ \w+(?:, )?)+)$", p.stdout, re.M):
        counts = {k: int(v) for v, k in re.findall(r"(\d+) (\w+)", rest)}
        row(f"Go {release[2:]}", text_kb(programs[0]), against, sum(counts.values()), inlined and inlined.group(1), counts)
    if p.returncode:
        print((p.stdout + p.stderr)[-3000:], file=sys.stderr)
    return p.returncode != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=2000)
    parser.add_argument("-d", "--dir", default=os.path.expanduser("~/.cache/sconce/lines"))
    parser.add_argument("--go", nargs="*", default=GO)
    parser.add_argument("--debian", nargs="*", default=[
        "libstdc++6-12-dbg:usr/lib/x86_64-linux-gnu/debug/libstdc++.so.6.0.30",
        "python3.11-minimal:usr/bin/python3.11:python3.11-dbg"])
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    programs = Programs(os.path.abspath(args.dir), args.names)
    make(programs)
    debian(programs, args.debian)
    print("\n| program | text, KB | against | addresses | inlined | same | both nothing | explained | different |")
    print("|---|---|---|---|---|---|---|---|---|")
    bad = [name for name, path in programs.made.items() if programs.wants(name) and native(name, path, args.n)]
    bad += [release for release in args.go if programs.wants(f"Go {release[2:]}") and go(release, args.n)]
    if bad:
        sys.exit(f"different: {', '.join(bad)}")


if __name__ == "__main__":
    main()
