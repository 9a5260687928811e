"""A stand-in for SGLang's process tree: a launcher, schedulers and a detokenizer
with the titles the real ones have, that meet at a store as theirs do. Nothing in
it serves a model.

usage: PYTHONPATH=testdata/scenarios/engine python3 -m sglang.launch_server \
           --model-path fake --tp N --port P --scenario MODE

  up            all have met, the log has the ready line, /health answers 200
  reaped        the same, but scheduler TP1 was killed, and its parent reaped it
  zombie        the same, not reaped
  early         only TP0 exists yet: the launcher works before it starts the next
  absent        the last scheduler was never started; the others wait in the store
  met           all have met, and read weights
  reaps         the same without a word in the log; the launcher reaps who ends
  syn           TP1 tries to reach a port that answers nothing: its queue is full
  refused       TP1 tries to reach a port at which nobody listens, and logs it
  placement     Ray has no place for the workers; each second a line says so
  step          TP0 and TP1 read from each other; TP1 is a phase behind
  step-slow     the same, but another thread of TP1 sends 3 KB every 5 s
  step-epoll    as step, with a thread in each that waits for events
  wait          TP0 reads from TP1, which works
  orphans       as absent, and the launcher kills itself: the ranks live on
  dies          as met; TP1 kills itself after two seconds

Lines go to standard error, as the engine's do; "ready" to descriptor READY_FD.
"""

import ctypes
import os
import select
import signal
import socket
import sys
import threading
import time


def option(name, otherwise):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else otherwise


mode, ranks, port = option("--scenario", "up"), int(option("--tp", "2")), int(option("--port", "0"))
ready_fd = int(os.environ.get("READY_FD", "1"))
libc = ctypes.CDLL(None)


def log(rank, text):
    if mode == "reaps":
        return
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    os.write(2, f"[{now}{' ' + rank if rank else ''}] {text}\n".encode())


def set_title(title):
    """Overwrites the command line in memory, and the name, as setproctitle does."""
    with open("/proc/self/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    ctypes.memmove(start, title.encode().ljust(end - start, b"\0"), end - start)
    libc.prctl(15, title.encode(), 0, 0, 0)


def child(title, run, *args):
    pid = os.fork()
    if pid == 0:
        if mode != "orphans":
            libc.prctl(1, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        set_title(title)
        run(*args)
        os._exit(0)
    return pid


def rest():
    """Sleeps until the end without a time-out."""
    libc.pause()


def wait_epoll():
    select.epoll().poll()


def read_weights():
    path = os.environ["FAKE_WEIGHTS"]
    with open(path, "rb", buffering=0) as f:
        while True:
            if not f.read(1 << 20):
                f.seek(0)
            time.sleep(0.02)


def work():
    keep = []
    while True:
        keep.append(bytearray(os.urandom(1 << 20)))
        if len(keep) > 300:
            keep = []
        time.sleep(0.01)


def scheduler(rank, store):
    name = f"TP{rank}"
    log(name, "Init torch distributed begin.")
    if mode == "syn" and rank == 1:
        full = socket.create_server(("127.0.0.1", 0), backlog=0)
        fill = [socket.socket() for _ in range(3)]
        for f in fill:
            f.setblocking(False)
            f.connect_ex(full.getsockname())
        time.sleep(0.2)
        socket.create_connection(full.getsockname())
    if mode == "refused" and rank == 1:
        n = 0
        while True:
            n += 1
            os.write(2, f"[W222 22:53:41.1 TCPStore.cpp:340] [c10d] TCP client failed to connect/validate to host 127.0.0.1:{store} - retrying (try={n}, timeout=600000ms, delay=4511ms): Connection refused\n".encode())
            time.sleep(4)
    if mode == "refused":
        rest()
    peers = []
    if rank == 0:
        l = store
        want = ranks - 1
        while len(peers) < want:
            peers.append(l.accept()[0])
        if mode == "reaps":
            l.close()  # what listens may be up
        own = peers[0]
    else:
        own = socket.create_connection(store.getsockname())
        store.close()
        if mode in ("absent", "orphans"):
            own.recv(1)
    log(name, "Init torch distributed ends. elapsed=1.20 s, mem usage=0.10 GB") if not (mode.startswith("step") and rank == 1) else None
    if mode.startswith("step") or mode == "wait":
        if rank == 0:
            log(name, "Load weight begin. avail mem=19.94 GB")
        if mode == "wait" and rank == 1:
            work()
        if mode == "step-epoll":
            threading.Thread(target=wait_epoll, daemon=True).start()
        if mode == "step-slow" and rank == 1:
            def trickle():
                while True:
                    time.sleep(5)
                    own.send(b"x" * 3072)
            threading.Thread(target=trickle, daemon=True).start()
        while own.recv(4096):
            pass
    log(name, "Load weight begin. avail mem=19.94 GB")
    if mode in ("met", "dies", "reaps"):
        if mode == "dies" and rank == 1:
            time.sleep(2)
            os.kill(os.getpid(), signal.SIGKILL)
        read_weights()
    log(name, "Load weight end. elapsed=0.71 s, type=LlamaForCausalLM, avail mem=19.73 GB, mem usage=0.21 GB.")
    rest()


def serve():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Health(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()


if mode == "reaps":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
log("", "server_args=ServerArgs(model_path='fake', tp_size=%d)" % ranks)
store = socket.create_server(("127.0.0.1", 0))
if mode == "refused":
    address = store.getsockname()[1]
    store.close()
    store = address
started = 0 if mode == "placement" else 1 if mode == "early" else ranks - 1 if mode in ("absent", "orphans") else ranks
kids = [child("sglang::scheduler_TP%d" % r, scheduler, r, store) for r in range(started)]
if mode not in ("early", "placement"):
    kids.append(child("sglang::detokenizer", lambda: (mode == "reaps" and store.close(), rest())))
if mode != "refused":
    store.close()
time.sleep(1)
if mode in ("up", "reaped", "zombie"):
    serve()
    log("", "The server is fired up and ready to roll!")
if mode in ("reaped", "zombie"):
    os.kill(kids[1], signal.SIGKILL)
    if mode == "reaped":
        os.waitpid(kids[1], 0)
time.sleep(0.3)
os.write(ready_fd, f"ready {' '.join(map(str, kids))}\n".encode())
if mode == "early":
    work()
for n in range(1, 300 if mode == "placement" else 0):
    log("", f"Waiting for creating a placement group of specs for {n} seconds. specs=[{{'GPU': 1.0}}]. Check `ray status`")
    if select.select([0], [], [], 1)[0]:
        break
if mode == "orphans":
    os.kill(os.getpid(), signal.SIGKILL)
select.select([0], [], [])
