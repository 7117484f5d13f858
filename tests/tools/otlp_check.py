#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""
Checks the bytes of ExportProfilesServiceRequest (or of ProfilesData, which has the same fields) against
every rule of the format. violations(bytes) is for scenarios; as a program:

  otlp_check.py FILE...      print what is wrong; exit code 1 if anything is
  otlp_check.py --fields     with the python of install-venv: compare our .proto files, and the decoder's
                             own table, field by field with the packaged descriptors
"""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire  # noqa: E402

TABLES = ("mapping_table", "location_table", "function_table", "link_table", "string_table",
          "attribute_table", "stack_table")
INT32 = 2 ** 31


class Checker:
    def __init__(self, request, now):
        self.request, self.now, self.found = request, now, []
        self.d = request.get("dictionary", {})
        self.used = {name: {0} for name in TABLES}
        self.profile_ids = set()

    def bad(self, text):
        self.found.append(text)

    def refer(self, table, index, where, null=True):
        """Index 0 is null; `null` says whether it may stand here. Returns the entry or None."""
        entries = self.d.get(table, [])
        if index < 0 or index >= min(len(entries), INT32):
            self.bad(f"{where}: {table}[{index}] is out of range ({len(entries)})")
            return None
        if index == 0 and not null:
            self.bad(f"{where}: {table}[0] where something has to stand")
        fresh = index not in self.used[table]
        self.used[table].add(index)
        return entries[index] if index and fresh else None

    def attributes(self, owner, where):
        keys = []
        for i in owner.get("attribute_indices", []):
            entry = self.refer("attribute_table", i, where, null=False)
            if entry is not None:
                self.attribute(entry, f"attribute {i}")
            if 0 < i < len(self.d.get("attribute_table", [])):
                keys.append(self.d["attribute_table"][i].get("key_strindex", 0))
        if len(keys) != len(set(keys)):
            self.bad(f"{where}: an attribute key stands twice")
        return keys

    def attribute(self, entry, where):
        self.refer("string_table", entry.get("key_strindex", 0), f"{where} key", null=False)
        self.refer("string_table", entry.get("unit_strindex", 0), f"{where} unit")
        self.any_value(entry.get("value", {}), where, references=True)

    def any_value(self, value, where, references=False):
        if len(value) != 1:
            self.bad(f"{where}: a value has to hold one thing, holds {sorted(value)}")
        if "string_value_strindex" in value:
            # Collector and Pyroscope do not resolve these.
            self.bad(f"{where}: reference in place of a string")
        if references and value.get("string_value") == "":
            self.bad(f"{where}: empty string")

    def key_values(self, pairs, where):
        keys = [kv.get("key", "") for kv in pairs]
        if "" in keys or any("key_strindex" in kv for kv in pairs):
            self.bad(f"{where}: attribute without a plain key")
        if len(keys) != len(set(keys)):
            self.bad(f"{where}: an attribute key stands twice: {sorted(keys)}")
        for kv in pairs:
            self.any_value(kv.get("value", {}), f"{where} {kv.get('key')}")

    def tables(self):
        for name in TABLES:
            entries = self.d.get(name)
            if not entries:
                self.bad(f"{name} is missing or empty")
            elif entries[0] not in ({}, ""):
                self.bad(f"{name}[0] is not the zero value: {entries[0]!r}")
            else:
                texts = [repr(e) for e in entries]
                if len(texts) != len(set(texts)):
                    twice = sorted(t for t in set(texts) if texts.count(t) > 1)
                    self.bad(f"{name} has duplicates: {twice[:3]}")

    def orphans(self):
        for name in TABLES:
            unused = set(range(len(self.d.get(name, [])))) - self.used[name]
            if unused:
                first = min(unused)
                self.bad(f"{name}: {len(unused)} entries that nothing refers to, first {first}: "
                         f"{self.d[name][first]!r}")

    def mapping(self, m, where):
        start, limit = m.get("memory_start", 0), m.get("memory_limit", 0)
        if (start or limit) and start >= limit:
            self.bad(f"{where}: memory_start {start:#x} is not below memory_limit {limit:#x}")
        self.refer("string_table", m.get("filename_strindex", 0), where)
        self.attributes(m, where)

    def function(self, f, where):
        names = [f.get(k, 0) for k in ("name_strindex", "system_name_strindex", "filename_strindex")]
        if not any(names):
            self.bad(f"{where}: no name at all")
        for i in names:
            self.refer("string_table", i, where)

    def frame_types(self, loc):
        """At most one; none where that is wrong, which is found elsewhere."""
        strings, table = self.d.get("string_table", []), self.d.get("attribute_table", [])
        entries = [table[i] for i in loc.get("attribute_indices", []) if 0 <= i < len(table)]
        return {e.get("value", {}).get("string_value") for e in entries
                if 0 <= e.get("key_strindex", 0) < len(strings) and
                strings[e.get("key_strindex", 0)] == "profile.frame.type"} or {"native"}

    def location(self, loc, where):
        m_index = loc.get("mapping_index", 0)
        m = self.refer("mapping_table", m_index, where)
        if m is not None:
            self.mapping(m, f"mapping {m_index}")
        if 0 < m_index < len(self.d.get("mapping_table", [])):
            m = self.d["mapping_table"][m_index]
            start, limit, at = m.get("memory_start", 0), m.get("memory_limit", 0), loc.get("address", 0)
            # A function of a script stands at no address of its runtime's file.
            script = at == 0 and not self.frame_types(loc) & {"native", "kernel"}
            if limit and not start <= at < limit and not script:
                self.bad(f"{where}: address {at:#x} is not in its mapping {start:#x}-{limit:#x}")
        for line in loc.get("lines", []):
            i = line.get("function_index", 0)
            f = self.refer("function_table", i, where, null=False)
            if f is not None:
                self.function(f, f"function {i}")
            if line.get("line", 0) < 0 or line.get("column", 0) < 0:
                self.bad(f"{where}: negative line or column")
        keys = self.attributes(loc, where)
        strings = self.d.get("string_table", [])
        if "profile.frame.type" not in [strings[k] for k in keys if 0 <= k < len(strings)]:
            self.bad(f"{where}: no profile.frame.type")

    def stack(self, index, where):
        s = self.refer("stack_table", index, where)
        if s is None:
            return
        for i in s.get("location_indices", []):
            loc = self.refer("location_table", i, f"stack {index}", null=False)
            if loc is not None:
                self.location(loc, f"location {i}")

    def sample(self, s, p, where):
        values, times = s.get("values", []), s.get("timestamps_unix_nano", [])
        if not values and not times:
            self.bad(f"{where}: neither value nor timestamp")
        elif values and times and len(values) != len(times):
            self.bad(f"{where}: {len(values)} values, {len(times)} timestamps")
        elif len(values) > 1 and not times:
            self.bad(f"{where}: several values without timestamps")
        start = p.get("time_unix_nano", 0)
        if any(not start <= t < start + p.get("duration_nano", 0) for t in times):
            self.bad(f"{where}: timestamp outside of the profile's time")
        self.stack(s.get("stack_index", 0), where)
        self.refer("link_table", s.get("link_index", 0), where)
        self.attributes(s, where)
        identity = (s.get("stack_index", 0), frozenset(s.get("attribute_indices", [])),
                    s.get("link_index", 0))
        return identity, (bool(values), bool(times))

    def profile(self, p, where):
        for name in ("sample_type", "period_type"):
            value = p.get(name, {})
            for k in ("type_strindex", "unit_strindex"):
                self.refer("string_table", value.get(k, 0), f"{where} {name}", null=False)
        if p.get("period", 0) <= 0:
            self.bad(f"{where}: no period")
        start, duration = p.get("time_unix_nano", 0), p.get("duration_nano", 0)
        if self.now and not self.now - 3600e9 <= start <= self.now + 600e9:
            self.bad(f"{where}: time_unix_nano {start} is not near now")
        if not 0 < duration < 86400e9:
            self.bad(f"{where}: duration {duration}")
        identifier = p.get("profile_id", b"")
        if len(identifier) != 16 or not any(identifier):
            self.bad(f"{where}: profile_id {identifier.hex()!r}")
        if identifier in self.profile_ids:
            self.bad(f"{where}: profile_id {identifier.hex()} stands twice")
        self.profile_ids.add(identifier)
        if ("original_payload" in p) != ("original_payload_format" in p):
            self.bad(f"{where}: original_payload and its format belong together")
        self.attributes(p, where)
        if not p.get("samples"):
            self.bad(f"{where}: no sample")
        seen = [self.sample(s, p, f"{where} sample {i}") for i, s in enumerate(p.get("samples", []))]
        if len({identity for identity, _ in seen}) != len(seen):
            self.bad(f"{where}: samples of equal identity are not merged")
        if len({shape for _, shape in seen}) > 1:
            self.bad(f"{where}: samples of different shapes")

    def run(self):
        self.tables()
        if not self.request.get("resource_profiles"):
            self.bad("no resource_profiles")
        for r, rp in enumerate(self.request.get("resource_profiles", [])):
            self.key_values(rp.get("resource", {}).get("attributes", []), f"resource {r}")
            if not rp.get("scope_profiles"):
                self.bad(f"resource {r}: no scope_profiles")
            for sp in rp.get("scope_profiles", []):
                self.key_values(sp.get("scope", {}).get("attributes", []), f"resource {r} scope")
                if not sp.get("profiles"):
                    self.bad(f"resource {r}: no profiles")
                for i, p in enumerate(sp.get("profiles", [])):
                    self.profile(p, f"resource {r} profile {i}")
        self.orphans()
        return self.found


def violations(data, now=None):
    """What is wrong with these bytes, as a list of lines. now: ns since 1970, 0 = do not compare."""
    try:
        request = wire.decode(data, "Request")
    except wire.WireError as error:
        return [str(error)]
    return Checker(request, time.time_ns() if now is None else now).run()


# --fields: only with the packages of install-venv.

PROTOS = ("opentelemetry/proto/collector/profiles/v1development/profiles_service.proto",
          "opentelemetry/proto/profiles/v1development/profiles.proto",
          "opentelemetry/proto/resource/v1/resource.proto",
          "opentelemetry/proto/common/v1/common.proto")
# Ours leave these out: nothing that we write or read.
LEFT_OUT = ("opentelemetry.proto.resource.v1.Resource.entity_refs",
            "opentelemetry.proto.common.v1.EntityRef.")


def our_fields(root):
    """{full name of field: (number, type, label, type name)} of every message in our .proto files."""
    from google.protobuf import descriptor_pb2
    files = [os.path.relpath(os.path.join(d, f), root) for d, _, names in
             os.walk(os.path.join(root, "proto")) for f in names if f.endswith(".proto")]
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "set")
        subprocess.run(["protoc", "-I.", f"--descriptor_set_out={out}", *files], cwd=root, check=True)
        with open(out, "rb") as f:
            return fields_of(descriptor_pb2.FileDescriptorSet.FromString(f.read()).file)


def packaged_fields():
    from google.protobuf import descriptor_pb2
    import importlib
    out = []
    for path in PROTOS:
        module = importlib.import_module(path[:-6].replace("/", ".") + "_pb2")
        proto = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(proto)
        out.append(proto)
    return fields_of(out)


def fields_of(files):
    fields = {}

    def walk(prefix, message):
        for f in message.field:
            fields[f"{prefix}.{message.name}.{f.name}"] = (f.number, f.type, f.label, f.type_name)
        for nested in message.nested_type:
            walk(f"{prefix}.{message.name}", nested)

    for file in files:
        for message in file.message_type:
            walk(file.package, message)
    return fields


def check_wire_table(packaged):
    """Our decoder's own numbers against the packaged ones."""
    renamed = {"Request": "ExportProfilesServiceRequest", "Dictionary": "ProfilesDictionary",
               "Scope": "InstrumentationScope"}
    bad = []
    for message, fields in wire.SCHEMA.items():
        if message.startswith("Pprof"):
            continue
        theirs = {name.rsplit(".", 1)[1]: entry[0] for name, entry in packaged.items()
                  if name.rsplit(".", 2)[1] == renamed.get(message, message)}
        bad += [f"decoder: {message}.{name} is {number}, packaged {theirs.get(name)}"
                for number, (name, _, _) in fields.items() if theirs.get(name) != number]
    return bad


def compare_fields(root):
    packaged, ours = packaged_fields(), our_fields(root)
    ours = {k: v for k, v in ours.items() if k.startswith("opentelemetry.proto.")}
    bad = check_wire_table(packaged)
    for name in sorted(set(packaged) | set(ours)):
        if name not in packaged:
            bad.append(f"{name}: ours only")
        elif name in ours and ours[name] != packaged[name]:
            bad.append(f"{name}: ours {ours[name]}, packaged {packaged[name]}")
        elif name not in ours and not name.startswith(LEFT_OUT):
            bad.append(f"{name}: missing in ours")
    if len(ours) < 60:
        bad.append(f"only {len(ours)} fields found in ours")
    print(f"{len(ours)} fields compared with {len(packaged)}")
    return bad


def main():
    if sys.argv[1:] == ["--fields"]:
        bad = compare_fields(os.path.dirname(os.path.dirname(os.path.dirname(
            os.path.abspath(__file__)))))
    else:
        bad = []
        for path in sys.argv[1:]:
            with open(path, "rb") as f:
                bad += [f"{path}: {v}" for v in violations(f.read(), 0)]
    print("\n".join(bad) if bad else "ok")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
