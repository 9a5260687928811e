"""A tree like tensor parallelism makes: a parent and eight ranks of 131 threads
each, all waiting for work. For benchmarks beside tools that read Python.

usage: python3 ranks.py [RANKS [THREADS]]
"""

import os
import signal
import sys
import threading

ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 8
threads = int(sys.argv[2]) if len(sys.argv) > 2 else 131


def rank(ready):
    threading.stack_size(128 * 1024)
    never = threading.Event()
    for _ in range(threads - 1):
        threading.Thread(target=never.wait, daemon=True).start()
    os.write(ready, b".")
    never.wait()


pids = []
read, write = os.pipe()
for _ in range(ranks):
    pid = os.fork()
    if pid == 0:
        rank(write)
    pids.append(pid)
for _ in range(ranks):
    os.read(read, 1)
print("ready", flush=True)
sys.stdin.read()
for pid in pids:
    os.kill(pid, signal.SIGKILL)
