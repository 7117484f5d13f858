# SPDX-License-Identifier: Apache-2.0
"""Workloads of languages that tell their chain (tests/lang/check.h), beside what arrives of them as OTLP."""
import subprocess

import lib
import wire


class Script:
    """One that runs. frames: [(name, file, line, first line, last line)], outermost first."""

    def __init__(self, name, language, command, **options):
        self.name, self.language, self.command = name, language, list(map(str, command))
        self.process = lib.start(self.command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, **options)
        self.frames = None

    def wait(self):
        """Until it has told, which it does once."""
        if self.frames:
            return
        self.frames = []
        for line in self.process.stdout:
            word, *fields = line.decode().rstrip("\n").split("\t")
            if word == "ready":
                return
            if word == "frame":
                name, file, *numbers = fields
                self.frames.append((name, file, *map(int, numbers)))
        lib.check(False, f"{self.name} ended: {self.command}")

    def holds(self, frames):
        """Whether these, (name, file, line, start line), are its chain: each stands where it called the
        next one, the last one anywhere in itself."""
        return len(frames) == len(self.frames) and all(
            got[0] == want[0] and of_file(got[1], want[1]) and (want[3] == 0 or got[3] in (0, want[3])) and
            (got[2] == want[2] if i + 1 < len(frames) else want[3] <= got[2] <= want[4])
            for i, (got, want) in enumerate(zip(frames, self.frames)))


def of_file(got, told):
    """Some workloads tell paths, some the last part of them."""
    return got == told or "/" not in told and got.endswith("/" + told)


def scripts_of(request, language):
    """[(executable's name, script frames outermost first, all names, count)]"""
    d = request["dictionary"]
    text, functions, attributes = d["string_table"], d["function_table"], d["attribute_table"]

    def frame(line):
        f = functions[line["function_index"]]
        return (text[f.get("name_strindex", 0)], text[f.get("filename_strindex", 0)], line.get("line", 0),
                f.get("start_line", 0))

    def location(at):
        keys = {text[attributes[i].get("key_strindex", 0)]: wire.plain(attributes[i]["value"])
                for i in at.get("attribute_indices", [])}
        return keys.get("profile.frame.type"), [frame(line) for line in at.get("lines", [])]

    locations = [location(at) for at in d["location_table"]]
    out = []
    for rp in request.get("resource_profiles", []):
        name = {a["key"]: wire.plain(a["value"]) for a in rp["resource"].get("attributes", [])}.get(
            "process.executable.name")
        for p in (p for sp in rp["scope_profiles"] for p in sp["profiles"]):
            if text[p["sample_type"]["type_strindex"]] != "samples":
                continue
            for s in p["samples"]:
                stack = [locations[i] for i in d["stack_table"][s.get("stack_index", 0)].get("location_indices", [])]
                count = sum(s["values"]) if s.get("values") else len(s["timestamps_unix_nano"])
                out.append((name, [f for kind, lines in reversed(stack) if kind == language for f in reversed(lines)],
                            [f[0] for _, lines in reversed(stack) for f in reversed(lines)], count))
    return out


def collect(sink, scripts, least, seconds):
    """{script: samples} of each, behind the batch in which its chain was seen first: what was taken before its
    runtime was known says no more than that there are scripts. Until there are so many of all."""
    for s in scripts:
        s.wait()
    languages, by_name, decoded = {s.language for s in scripts}, {s.name: s for s in scripts}, []

    def arrived():
        with sink.lock:
            bodies = sink.bodies[len(decoded):]
        for body in bodies:
            request = wire.decode(body, "Request")
            decoded.append([sample for language in languages for sample in scripts_of(request, language)
                            if sample[0] in by_name and by_name[sample[0]].language == language])
        mine = {s: None for s in scripts}
        for batch in decoded:
            for s in scripts:
                samples = [sample[1:] for sample in batch if sample[0] == s.name]
                if mine[s] is not None:
                    mine[s] += samples
                elif any(s.holds(frames) for frames, _, _ in samples):
                    mine[s] = []
        return mine if all(sum(n for _, _, n in mine[s] or []) >= least for s in scripts) else None
    return lib.wait_for(f"{least} samples of each", seconds, arrived)


def check(script, samples, share=0.99):
    total = sum(n for _, _, n in samples)
    good = sum(n for frames, _, n in samples if script.holds(frames))
    print(f"{script.name}: {good} of {total} samples have its chain of {len(script.frames)} functions")
    bad = sorted(((n, f, names) for f, names, n in samples if not script.holds(f)), key=lambda x: -x[0])[:3]
    lib.check(len(script.frames) >= 8 and len({f[1] for f in script.frames}) >= 2, f"{script.name}: {script.frames}")
    lib.check(good >= share * total, f"{script.name}: {good} of {total}, not {script.frames} but {bad}")
