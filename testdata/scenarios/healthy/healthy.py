"""Healthy Python programs under load: see ../healthy.c for the idea.

usage: healthy.py locks | gil | queue | prefork
"""
import ctypes
import multiprocessing
import os
import queue
import random
import sys
import threading
import time

LOCKS = [threading.Lock() for _ in range(3)] + [threading.RLock() for _ in range(3)]


def fight():
    while True:
        a, b = sorted(random.sample(range(6), 2))
        with LOCKS[a]:
            with LOCKS[b]:
                sum(range(random.randrange(2000)))
        time.sleep(random.random() / 500)


def compute():
    while True:
        sum(range(2000))


def serve(q, done):
    while True:
        item = q.get()
        with LOCKS[item % 6]:
            time.sleep(0.0005)
        done.put(item)


def feed(q, done):
    for _ in range(4):
        q.put(1)
    while True:
        q.put(done.get() + 1)


def worker(pipe):
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: never outlive the test
    while True:
        pipe.send(pipe.recv() + 1)


def talk(pipe):
    pipe.send(0)
    while True:
        pipe.send(pipe.recv())
        time.sleep(0.0005)


def start(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


kind = sys.argv[1]
if kind == "locks":
    for _ in range(12):
        start(fight)
elif kind == "gil":
    for _ in range(6):
        start(compute)
elif kind == "queue":
    q, done = queue.Queue(2), queue.Queue()
    for _ in range(6):
        start(serve, q, done)
    start(feed, q, done)
elif kind == "prefork":
    context = multiprocessing.get_context("fork")
    for _ in range(4):
        mine, theirs = context.Pipe()
        context.Process(target=worker, args=(theirs,), daemon=True).start()
        start(talk, mine)
print("ready", flush=True)
os.read(0, 1)
os._exit(0)
