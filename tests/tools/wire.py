# SPDX-License-Identifier: Apache-2.0
"""
A small strict protobuf decoder for the two formats that Sconce writes, OTLP profiles and pprof.

It shares nothing with the programs under test, and needs no package. decode(bytes, message) gives a dict
of the fields that are set; an unknown field, a wrong wire type, a bad string is a WireError.
Field numbers: compared with the packaged descriptors by otlp_check.py --fields.
"""
import struct

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    pass


def _fields(text):
    out = {}
    for item in text.split(","):
        number, name, kind = item.split()
        repeated = kind.endswith("*")
        out[int(number)] = (name, kind.rstrip("*"), repeated)
    return out


SCHEMA = {name: _fields(text) for name, text in {
    "Request": "1 resource_profiles ResourceProfiles*, 2 dictionary Dictionary",
    "Dictionary": "1 mapping_table Mapping*, 2 location_table Location*, 3 function_table Function*,"
                  "4 link_table Link*, 5 string_table string*, 6 attribute_table KeyValueAndUnit*,"
                  "7 stack_table Stack*",
    "ResourceProfiles": "1 resource Resource, 2 scope_profiles ScopeProfiles*, 3 schema_url string",
    "ScopeProfiles": "1 scope Scope, 2 profiles Profile*, 3 schema_url string",
    "Profile": "1 sample_type ValueType, 2 samples Sample*, 3 time_unix_nano fixed64,"
               "4 duration_nano uint, 5 period_type ValueType, 6 period int, 7 profile_id bytes,"
               "8 dropped_attributes_count uint, 9 original_payload_format string,"
               "10 original_payload bytes, 11 attribute_indices int*",
    "Sample": "1 stack_index int, 2 attribute_indices int*, 3 link_index int, 4 values int*,"
              "5 timestamps_unix_nano fixed64*",
    "ValueType": "1 type_strindex int, 2 unit_strindex int",
    "Mapping": "1 memory_start uint, 2 memory_limit uint, 3 file_offset uint,"
               "4 filename_strindex int, 5 attribute_indices int*",
    "Stack": "1 location_indices int*",
    "Location": "1 mapping_index int, 2 address uint, 3 lines Line*, 4 attribute_indices int*",
    "Line": "1 function_index int, 2 line int, 3 column int",
    "Function": "1 name_strindex int, 2 system_name_strindex int, 3 filename_strindex int,"
                "4 start_line int",
    "Link": "1 trace_id bytes, 2 span_id bytes",
    "KeyValueAndUnit": "1 key_strindex int, 2 value AnyValue, 3 unit_strindex int",
    "Resource": "1 attributes KeyValue*, 2 dropped_attributes_count uint",
    "Scope": "1 name string, 2 version string, 3 attributes KeyValue*,"
             "4 dropped_attributes_count uint",
    "KeyValue": "1 key string, 2 value AnyValue, 3 key_strindex int",
    "AnyValue": "1 string_value string, 2 bool_value int, 3 int_value int, 4 double_value double,"
                "5 array_value ArrayValue, 6 kvlist_value KeyValueList, 7 bytes_value bytes,"
                "8 string_value_strindex int",
    "ArrayValue": "1 values AnyValue*",
    "KeyValueList": "1 values KeyValue*",
    # pprof
    "Pprof": "1 sample_type PprofValueType*, 2 sample PprofSample*, 3 mapping PprofMapping*,"
             "4 location PprofLocation*, 5 function PprofFunction*, 6 string_table string*,"
             "7 drop_frames int, 8 keep_frames int, 9 time_nanos int, 10 duration_nanos int,"
             "11 period_type PprofValueType, 12 period int, 13 comment int*,"
             "14 default_sample_type int, 15 doc_url int",
    "PprofValueType": "1 type int, 2 unit int",
    "PprofSample": "1 location_id uint*, 2 value int*, 3 label PprofLabel*",
    "PprofLabel": "1 key int, 2 str int, 3 num int, 4 num_unit int",
    "PprofMapping": "1 id uint, 2 memory_start uint, 3 memory_limit uint, 4 file_offset uint,"
                    "5 filename int, 6 build_id int, 7 has_functions int, 8 has_filenames int,"
                    "9 has_line_numbers int, 10 has_inline_frames int",
    "PprofLocation": "1 id uint, 2 mapping_id uint, 3 address uint, 4 line PprofLine*,"
                     "5 is_folded int",
    "PprofLine": "1 function_id uint, 2 line int, 3 column int",
    "PprofFunction": "1 id uint, 2 name int, 3 system_name int, 4 filename int, 5 start_line int",
}.items()}


def _varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("varint cut short or too long")
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value & (2 ** 64 - 1), at


def _signed(value):
    return value - 2 ** 64 if value >= 2 ** 63 else value


def _scalar(kind, wire, data, at):
    if kind in ("int", "uint") and wire == VARINT:
        value, at = _varint(data, at)
        return (_signed(value) if kind == "int" else value), at
    if kind in ("fixed64", "double") and wire == FIXED64:
        if at + 8 > len(data):
            raise WireError("fixed64 cut short")
        return struct.unpack_from("<Q" if kind == "fixed64" else "<d", data, at)[0], at + 8
    raise WireError(f"wire type {wire} for {kind}")


def _packed(kind, data):
    out, at = [], 0
    wire = FIXED64 if kind in ("fixed64", "double") else VARINT
    while at < len(data):
        value, at = _scalar(kind, wire, data, at)
        out.append(value)
    return out


def _length_delimited(kind, data):
    if kind == "string":
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise WireError(f"string is not UTF-8: {error}") from error
    return data if kind == "bytes" else decode(data, kind)


def decode(data, message):
    out, at, fields = {}, 0, SCHEMA[message]
    while at < len(data):
        tag, at = _varint(data, at)
        if tag >> 3 not in fields:
            raise WireError(f"{message}: unknown field {tag >> 3}")
        (name, kind, repeated), wire = fields[tag >> 3], tag & 7
        if wire == BYTES:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise WireError(f"{message}.{name}: cut short")
            chunk, at = data[at:at + length], at + length
            if kind in ("int", "uint", "fixed64", "double"):
                if not repeated:
                    raise WireError(f"{message}.{name}: packed, but not repeated")
                out.setdefault(name, []).extend(_packed(kind, chunk))
                continue
            value = _length_delimited(kind, chunk)
        else:
            value, at = _scalar(kind, wire, data, at)
        if repeated:
            out.setdefault(name, []).append(value)
        elif name in out:
            raise WireError(f"{message}.{name}: twice")
        else:
            out[name] = value
    return out


def _frames(locations):
    """Names root first, from (names of one location innermost first) leaf first."""
    return [name for names in reversed(locations) for name in reversed(names)]


def otlp_stacks(request, kernel=""):
    """[(names root first, count, {attribute: value}, resource attributes)] of all samples/count.

    kernel: what is put behind the names of the kernel's functions.
    """
    d = request["dictionary"]
    strings = d["string_table"]

    def attributes(indices):
        table = d["attribute_table"]
        return {strings[table[i]["key_strindex"]]: plain(table[i]["value"]) for i in indices}

    def location(i):
        at = d["location_table"][i]
        suffix = kernel and attributes(at.get("attribute_indices", [])).get("profile.frame.type") == "kernel"
        return [strings[d["function_table"][line["function_index"]].get("name_strindex", 0)] + (kernel if suffix else "")
                for line in at.get("lines", [])] or ["?"]

    out = []
    for rp in request.get("resource_profiles", []):
        resource = {kv["key"]: plain(kv["value"]) for kv in rp.get("resource", {}).get("attributes", [])}
        for sp in rp.get("scope_profiles", []):
            for profile in sp.get("profiles", []):
                if strings[profile["sample_type"].get("type_strindex", 0)] != "samples":
                    continue
                for s in profile.get("samples", []):
                    stack = d["stack_table"][s.get("stack_index", 0)].get("location_indices", [])
                    count = sum(s["values"]) if s.get("values") else len(s["timestamps_unix_nano"])
                    out.append((_frames([location(i) for i in stack]), count,
                                attributes(s.get("attribute_indices", [])), resource))
    return out


def plain(value):
    """What an AnyValue holds."""
    for name, held in value.items():
        return held if not isinstance(held, dict) else [plain(v) for v in held.get("values", [])]
    return None


def pprof_stacks(p):
    """[(names root first, first value, {label: value})] of a decoded pprof profile."""
    strings = p["string_table"]
    functions = {f["id"]: strings[f.get("name", 0)] for f in p.get("function", [])}
    locations = {loc["id"]: [functions[line["function_id"]] for line in loc.get("line", [])] or ["?"]
                 for loc in p.get("location", [])}
    out = []
    for s in p.get("sample", []):
        labels = {strings[lb["key"]]: strings[lb["str"]] if lb.get("str") else lb.get("num", 0)
                  for lb in s.get("label", [])}
        out.append((_frames([locations[i] for i in s.get("location_id", [])]), s["value"][0], labels))
    return out
