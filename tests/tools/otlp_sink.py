#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""
A receiver of OTLP profiles on loopback, for scenarios. It keeps every request body (gunzipped) and can
misbehave on demand: Sink.mode, or by `GET /mode/<mode>`.

  ok         200, empty partial_success
  503, 429   come back later (Retry-After: 1)
  400        refused for good
  hang       reads, never answers
  slow       keeps the body, answers 200 after 2 s
  amnesia    keeps the body, then closes the connection without an answer

As a program: otlp_sink.py PORT [DIR]; prints its sums as JSON on SIGTERM or SIGINT, and for GET /stats;
bodies are written into DIR.
"""
import gzip
import json
import os
import signal
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import wire  # noqa: E402

PATH = "/v1development/profiles"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, code, body=b"", kind="application/x-protobuf", headers=()):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        sink = self.server.sink
        if self.path == "/stats":
            self.answer(200, json.dumps(sink.sums()).encode(), "application/json")
        elif self.path.startswith("/mode/"):
            sink.mode = self.path[6:]
            self.answer(200)
        else:
            self.answer(404)

    def read_body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

    def do_POST(self):
        sink, mode = self.server.sink, self.server.sink.mode
        body = self.read_body()
        sink.request(dict(self.headers), self.path)
        if mode == "hang":
            sink.released.wait(120)
            self.close_connection = True
        elif mode in ("503", "429"):
            self.answer(int(mode), headers=[("Retry-After", "1")])
        elif mode == "400":
            self.answer(400, b"no", "text/plain")
        elif self.path != PATH or self.headers.get("Content-Type") != "application/x-protobuf":
            self.answer(404)
        else:
            sink.take(body)
            if mode == "slow":
                sink.released.wait(2)
            if mode == "amnesia":
                self.close_connection = True
            else:
                self.answer(200, b"\x0a\x00")


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A sender that is killed while it waits is what scenarios do: not worth a traceback."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Sink:
    def __init__(self, port=0, directory=None, certificate=None):
        """certificate: a PEM file with the key in it; then it speaks TLS only."""
        self.mode, self.port, self.directory, self.tls = "ok", port, directory, None
        if certificate:
            self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.tls.load_cert_chain(certificate)
        self.bodies, self.headers, self.requests, self.wrong_paths = [], [], 0, 0
        self.lock, self.released, self.server = threading.Lock(), threading.Event(), None
        self.start()

    def start(self):
        """Listen (again, on the same port)."""
        self.released.clear()
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.sink = self
        if self.tls:
            self.server.socket = self.tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        """Be absent. What is in progress is cut off."""
        self.released.set()
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def request(self, headers, path):
        with self.lock:
            self.requests += 1
            self.wrong_paths += path != PATH
            self.headers.append(headers)

    def take(self, body):
        with self.lock:
            self.bodies.append(body)
            if self.directory:
                with open(f"{self.directory}/{len(self.bodies):05}.pb", "wb") as f:
                    f.write(body)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def sums(self):
        """Samples by profile_id: one that came twice counts once, and has to be the same both times."""
        with self.lock:
            bodies = list(self.bodies)
        seen, samples, duplicates, differing = {}, 0, 0, 0
        for body in bodies:
            request = wire.decode(body, "Request")
            strings = request["dictionary"]["string_table"]
            for rp in request.get("resource_profiles", []):
                for p in (p for sp in rp["scope_profiles"] for p in sp["profiles"]):
                    if strings[p["sample_type"]["type_strindex"]] != "samples":
                        continue
                    count = sum(sum(s["values"]) if s.get("values") else
                                len(s["timestamps_unix_nano"]) for s in p["samples"])
                    if p["profile_id"] in seen:
                        duplicates += 1
                        differing += seen[p["profile_id"]] != count
                    else:
                        seen[p["profile_id"]] = count
                        samples += count
        return {"requests": self.requests, "bodies": len(bodies), "profiles": len(seen),
                "samples": samples, "duplicate_profiles": duplicates, "differing": differing}

    def stacks(self):
        with self.lock:
            bodies = list(self.bodies)
        return [s for body in bodies for s in wire.otlp_stacks(wire.decode(body, "Request"))]


def main():
    sink = Sink(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
    print(json.dumps(sink.sums()))


if __name__ == "__main__":
    main()
