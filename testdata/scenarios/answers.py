"""A small server of the OpenAI chat interface, as real as a test needs: one
accept loop, one engine thread that takes requests from a queue, one thread for
each connection. It answers 2+2, and one part of it can really get stuck.

usage: answers.py [--port N | --uds PATH] [--reuseport] [--api-key KEY]
                  [--tls CERT KEY] [--metrics] [--most N] [--stuck accept|engine|stream|prefill]

accept:  the accept loop waits for a lock that is never released
engine:  the engine thread does, so that requests stay in the queue
stream:  the connection's thread does, after the first token
prefill: the twin: the engine computes for as long as the server lives
With --most it turns requests away while it has N of them. One that asks for more
than 1000 tokens gets them, 50 a second.
It prints "ready PORT" and every header it gets to standard error.
"""
import argparse
import http.server
import json
import os
import queue
import socket
import socketserver
import ssl
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, default=0)
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--uds")
parser.add_argument("--reuseport", action="store_true")
parser.add_argument("--api-key")
parser.add_argument("--tls", nargs=2)
parser.add_argument("--stuck", default="")
parser.add_argument("--metrics", action="store_true")
parser.add_argument("--most", type=int, default=1000)
parser.add_argument("--answer", default="4")
args, _ = parser.parse_known_args()

never = threading.Lock()
never.acquire()
requests = queue.Queue()
counts = {"running": 0, "waiting": 0, "tokens": 0}


def engine():
    while True:
        reply, tokens = requests.get()
        counts["waiting"] -= 1
        counts["running"] += 1
        if args.stuck == "engine":
            never.acquire()
        while args.stuck == "prefill":
            sum(i * i for i in range(10000))
        for word in ["word"] * tokens if tokens > 1000 else args.answer.split() or [""]:
            if tokens > 1000:
                time.sleep(0.02)
            counts["tokens"] += 1
            reply.put(word)
        counts["running"] -= 1
        reply.put(None)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "client"

    def send(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refused(self):
        print(self.command, self.path, self.headers.get("Host"), "key" if self.headers.get("Authorization") else "no key",
              file=sys.stderr, flush=True)
        if args.api_key and self.headers.get("Authorization") != "Bearer " + args.api_key:
            # A careless server that shows the key it wants.
            self.send(401, {"error": "Unauthorized", "wanted": args.api_key})
            return True
        return False

    def do_GET(self):
        if self.path == "/health":
            return self.send(200, {})
        if self.path == "/metrics" and args.metrics:
            # As vLLM's front end does: whatever the engine last said.
            self.send_response(200)
            text = "".join("vllm:%s %d\n" % pair for pair in (("num_requests_running", counts["running"]),
                           ("num_requests_waiting", counts["waiting"]), ("generation_tokens_total", counts["tokens"])))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            return self.wfile.write(text.encode())
        if self.refused():
            return
        if self.path == "/v1/models":
            return self.send(200, {"data": [{"id": "small"}]})
        self.send(404, {"error": "Not Found"})

    def event(self, text):
        data = ("data: " + text + "\n\n").encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refused():
            return
        if body["model"] != "small":
            return self.send(404, {"error": {"message": "The model `%s` does not exist." % body["model"], "type": "NotFoundError", "code": 404}})
        if counts["running"] + counts["waiting"] >= args.most:
            return self.send(429, {"error": {"message": "Model is overloaded", "code": 429}})
        words = queue.Queue()
        counts["waiting"] += 1
        requests.put((words, body.get("max_tokens", 0)))
        first = words.get()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        word = first
        while word is not None:
            self.event(json.dumps({"choices": [{"index": 0, "delta": {"content": word + " "}}]}))
            if args.stuck == "stream":
                never.acquire()
            word = words.get()
        self.event(json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    address_family = socket.AF_UNIX if args.uds else socket.AF_INET6 if ":" in args.host else socket.AF_INET

    def server_bind(self):
        if args.reuseport:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "server", 0

    def get_request(self):
        if args.stuck == "accept":
            never.acquire()
        connection, address = super().get_request()
        return connection, address or ("", 0)


if args.uds and args.uds.startswith("@"):
    args.uds = "\0" + args.uds[1:]
server = Server(args.uds or (args.host, args.port), Handler)
if args.tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*args.tls)
    server.socket = context.wrap_socket(server.socket, server_side=True)


def ticks():
    # As in any real server, some thread wakes now and then.
    while True:
        time.sleep(0.2)


threading.Thread(target=ticks, daemon=True).start()
threading.Thread(target=engine, daemon=True).start()
out = os.fdopen(int(os.environ.get("READY_FD", "1")), "w")
print("ready", 0 if args.uds else server.socket.getsockname()[1], file=out, flush=True)
server.serve_forever()
