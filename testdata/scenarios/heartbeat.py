"""A process of 131 threads, one of which beats every millisecond and keeps the
longest gap it has seen. Each line on standard input makes it print that gap in
milliseconds, and begin anew.
"""
import sys
import threading
import time

longest = 0.0


def beat():
    global longest
    last = time.monotonic()
    while True:
        time.sleep(0.001)
        now = time.monotonic()
        if now - last > longest:
            longest = now - last
        last = now


for _ in range(129):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
threading.Thread(target=beat, daemon=True).start()
time.sleep(0.2)
print("ready", flush=True)
for _ in sys.stdin:
    print(f"{longest * 1000:.3f}", flush=True)
    longest = 0.0
