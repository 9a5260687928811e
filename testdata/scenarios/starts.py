"""Plays the start of vLLM: its command line, its log lines, its work.

usage: vllm serve MODEL --port PORT   (this file, copied or linked as "vllm";
under another name it is a server that nobody knows)

START_STEPS says what it does, step by step:
  read=MIB/RATE   reads the model file at RATE MiB/s
  stand=S         stands still for S seconds, in a sleep
  spin=S          computes for S seconds
  yield=S         gives its processor away for S seconds, as ranks that wait do
  log=TEXT        writes a log line
  chatter=N       writes N times that it loads, 100 lines a second
  yielding        does so in a thread from now on
  prefill=S       serves one request at a time, and computes S seconds for each
  stuck=S         serves one request at a time, and sleeps S seconds in each
  serve           listens, says that it is ready, and answers
  mute            listens, says that it is ready, and answers nobody
  exit=CODE       ends
"""
import http.server
import json
import os
import sys
import threading
import time

MODEL, PORT = sys.argv[2], int(sys.argv[sys.argv.index("--port") + 1])


def log(text):
    print("INFO " + time.strftime("%m-%d %H:%M:%S") + " " + text, flush=True)


def read(what):
    mib, rate = (float(v) for v in what.split("/"))
    path = os.path.join(MODEL, "model.safetensors")
    log("[default_loader.py:250] Loading weights took a while")
    with open(path, "rb", buffering=0) as f:
        begin, done = time.monotonic(), 0
        while done < mib:
            f.read(1 << 20)
            done += 1
            time.sleep(max(0, begin + done / rate - time.monotonic()))


def chatter(lines):
    for n in range(int(lines)):
        log("[default_loader.py:250] loaded tensor %d of the checkpoint, %s" % (n, "x" * 900))
        time.sleep(0.01)


def spin(seconds):
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        pass


def give_way(seconds):
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        os.sched_yield()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    work = None

    def reply(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode())

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.work:
            self.work()
        chunk = {"object": "chat.completion.chunk", "model": MODEL,
                 "choices": [{"index": 0, "delta": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
                 "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
        self.reply(("data: %s\n\ndata: [DONE]\n\n" % json.dumps(chunk)).encode(), "text/event-stream")

    def log_message(self, *args):
        pass


def serve(kind=http.server.ThreadingHTTPServer, work=None):
    Handler.work = staticmethod(work) if work else None
    server = kind(("127.0.0.1", PORT), Handler)
    print("INFO:     Application startup complete.", flush=True)
    server.serve_forever()


def mute():
    server = http.server.HTTPServer(("127.0.0.1", PORT), Handler)
    print("INFO:     Application startup complete.", flush=True)
    while server:
        time.sleep(3600)


os.write(int(os.environ.get("READY_FD", 1)), b"ready\n")
for step in os.environ["START_STEPS"].split(";"):
    do, _, what = step.partition("=")
    {"read": lambda: read(what), "stand": lambda: time.sleep(float(what)), "spin": lambda: spin(what),
     "yield": lambda: give_way(what), "yielding": lambda: threading.Thread(target=give_way, args=(3600,), daemon=True).start(),
     "prefill": lambda: serve(http.server.HTTPServer, lambda: spin(what)), "stuck": lambda: serve(http.server.HTTPServer, lambda: time.sleep(float(what))),
     "log": lambda: log(what), "chatter": lambda: chatter(what),
     "serve": serve, "mute": mute, "exit": lambda: os._exit(int(what))}[do]()
