"""What a server does with the files of its caches. Tests copy it to a file
called "vllm" and run that as "python3 vllm serve MODEL", which looks like the
engine. The mode is in CACHES_MODE, the directory in CACHES_DIR.

  wait       look for CACHES_LOCK, or else DIR/ext/lock, ten times a second in a
             module called file_baton.py, in CACHES_DIR/utils, as torch does
  peer       look for DIR/go in the same rhythm: another machine makes it
  build      lock DIR/ext/build.lock with flock(2), run DIR/nvcc, and let three
             forked ranks wait in flock(2) for it
  baton      the same with a file that counts by its existence: the first rank
             makes DIR/ext/lock and keeps it open, the others look for it
  filelock   the same with ranks that try the lock twenty times a second, as the
             filelock package does
  hold       make DIR/ext/lock, keep it open and compute: no server, but what
             another one waits for
  download   fetch from the address in CACHES_PEER into
             DIR/hub/models--x/blobs/abc.incomplete
  rest       sleep for a tenth of a second for ever
"""

import ctypes
import fcntl
import os
import socket
import subprocess
import sys
import time

mode, base = os.environ["CACHES_MODE"], os.environ["CACHES_DIR"]
baton = os.path.join(base, "ext", "lock")
PR_SET_PDEATHSIG, SIGKILL = 1, 9


def dies_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)


def wait():
    while os.path.exists(baton):
        time.sleep(0.1)
    print("gone", flush=True)


def ranks(n, run):
    for _ in range(n):
        if os.fork() == 0:
            dies_with_parent()
            run()
            os._exit(0)


def wait_flock():
    fd = os.open(os.path.join(base, "ext", "build.lock"), os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)


def try_flock():
    while True:
        fd = os.open(os.path.join(base, "ext", "build.lock"), os.O_RDWR | os.O_TRUNC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            os.close(fd)
        time.sleep(0.05)


def compile():
    out = os.path.join(base, "ext", "kernel.o")
    nvcc = subprocess.Popen([os.path.join(base, "nvcc"), out, os.path.join(base, "cicc")])
    print("ready", nvcc.pid, flush=True)
    nvcc.wait()


def download():
    host, port = os.environ["CACHES_PEER"].rsplit(":", 1)
    blobs = os.path.join(base, "hub", "models--x", "blobs")
    os.makedirs(blobs, exist_ok=True)
    peer = socket.create_connection((host, int(port)))
    with open(os.path.join(blobs, "abc.incomplete"), "ab", buffering=0) as f:
        print("ready", flush=True)
        while True:
            piece = peer.recv(65536)
            if not piece:
                break
            f.write(piece)
    time.sleep(300)


if mode == "wait":
    os.makedirs(os.path.join(base, "utils"), exist_ok=True)
    with open(os.path.join(base, "utils", "file_baton.py"), "w") as f:
        f.write("import os, time\ndef wait(path):\n    while os.path.exists(path):\n        time.sleep(0.1)\n")
    sys.path.insert(0, os.path.join(base, "utils"))
    import file_baton

    print("ready", flush=True)
    file_baton.wait(os.environ.get("CACHES_LOCK", baton))
    print("gone", flush=True)
    time.sleep(300)
elif mode == "peer":
    print("ready", flush=True)
    while not os.path.exists(os.path.join(base, "go")):
        time.sleep(0.1)
elif mode in ("build", "filelock"):
    fd = os.open(os.path.join(base, "ext", "build.lock"), os.O_RDWR | os.O_CREAT)
    # Not inherited: a lock of flock(2) belongs to whoever has the descriptor.
    fcntl.flock(fd, fcntl.LOCK_EX)

    def rank():
        os.close(fd)
        wait_flock() if mode == "build" else try_flock()

    ranks(3, rank)
    compile()
elif mode == "baton":
    fd = os.open(baton, os.O_CREAT | os.O_EXCL)

    def rank():
        os.close(fd)
        wait()

    ranks(3, rank)
    compile()
elif mode == "hold":
    fd = os.open(baton, os.O_CREAT | os.O_EXCL)
    print("ready", flush=True)
    end = time.time() + 300
    while time.time() < end:
        pass
elif mode == "download":
    download()
elif mode == "rest":
    print("ready", flush=True)
    end = time.time() + 300
    while time.time() < end:
        time.sleep(0.1)
