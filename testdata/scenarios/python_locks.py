"""Python threads and their locks: python_locks.py MODE [COUNT].

Prints "ready" when (or just before) it is in position, with the address of a
lock where a mode has one to tell, and ends when its input does.
"""
import ctypes
import os
import queue
import socket
import sys
import threading
import time
import warnings


def ready(*what):
    os.write(1, (" ".join(["ready", *map(str, what)]) + "\n").encode())


def settle():
    """Returns when all other threads have slept for 0.3 s."""
    def look():
        seen = {}
        for tid in os.listdir("/proc/self/task"):
            if int(tid) == threading.get_native_id():
                continue
            with open("/proc/self/task/%s/stat" % tid) as f:
                state = f.read().rpartition(")")[2].split()[0]
            with open("/proc/self/task/%s/schedstat" % tid) as f:
                seen[tid] = state, f.read()
        return seen

    last, same = None, 0
    while same < 6:
        time.sleep(0.05)
        now = look()
        asleep = all(state == "S" for state, _ in now.values())
        same = same + 1 if asleep and now == last else 0
        last = now


def until_input_ends():
    while os.read(0, 4096):
        pass
    os._exit(0)


def start(*targets):
    threads = [threading.Thread(target=t, name="%s-%d" % (t.__name__, n), daemon=True) for n, t in enumerate(targets)]
    for t in threads:
        t.start()
    return threads


def abba(make):
    first, second = make(), make()
    both = threading.Barrier(2)

    def takes_first():
        with first:
            both.wait()
            with second:
                pass

    def takes_second():
        with second:
            both.wait()
            with first:
                pass

    start(takes_first, takes_second)
    settle()
    ready(hex(id(first)), hex(id(second)))
    until_input_ends()


def lock_abba():
    abba(threading.Lock)


def rlock_abba():
    abba(threading.RLock)


def nested():
    """One holds a lock in an outer function and an RLock twice, and waits."""
    outer, inner, wanted = threading.Lock(), threading.RLock(), threading.Lock()

    def holds_more():
        with inner:
            try:
                with inner:
                    wanted.acquire()
            finally:
                pass

    def holds():
        with outer:
            for _ in range(3):
                holds_more()

    def wants_inner():
        time.sleep(0.1)
        inner.acquire()

    wanted.acquire()
    start(holds, wants_inner)
    settle()
    ready(hex(id(outer)), hex(id(inner)), hex(id(wanted)))
    until_input_ends()


def gil_native():
    """A C call that sleeps for ever and never lets go of the GIL."""
    library = ctypes.PyDLL(None)

    def holds_the_gil():
        library.pause()

    def wants_the_gil():
        time.sleep(0.05)

    start(*[wants_the_gil] * 4)
    ready()
    holds_the_gil()


def gil_mutex():
    """One holds a C mutex and wants the GIL, one the other way round."""
    library = ctypes.PyDLL(None)
    mutex = ctypes.create_string_buffer(64)

    def has_mutex_wants_gil():
        library.pthread_mutex_lock(mutex)
        time.sleep(0.3)
        library.pthread_mutex_unlock(mutex)

    def has_gil_wants_mutex():
        library.pthread_mutex_lock(mutex)

    start(has_mutex_wants_gil)
    time.sleep(0.1)
    ready()
    has_gil_wants_mutex()


def join_cycle():
    threads = []

    def joins_second():
        time.sleep(0.1)
        threads[1].join()

    def joins_first():
        time.sleep(0.1)
        threads[0].join()

    threads += start(joins_second, joins_first)
    settle()
    ready()
    until_input_ends()


def rlock_join():
    """One joins a thread that wants the RLock which the joiner holds."""
    rlock = threading.RLock()

    def wants_rlock():
        with rlock:
            pass

    thread = threading.Thread(target=wants_rlock)
    reports(hex(id(rlock)))
    with rlock:
        thread.start()
        thread.join()


def join_sleeps():
    """Healthy, for all that is known: the joined thread sleeps and holds nothing."""
    def sleeps():
        time.sleep(3600)

    thread = threading.Thread(target=sleeps, daemon=True)
    thread.start()
    reports()
    thread.join()


def reports(*what):
    """Prints when main and all other threads sleep; ends with the input."""
    def watches():
        settle()
        ready(*what)
        until_input_ends()

    threading.Thread(target=watches, daemon=True).start()


def selflock():
    """One takes a Lock again that it has."""
    lock = threading.Lock()

    def takes_twice():
        with lock:
            lock.acquire()

    start(takes_twice)
    settle()
    ready(hex(id(lock)))
    until_input_ends()


def handoff():
    """Healthy: one has given back the Lock of its block and wants it again."""
    lock = threading.Lock()

    def gives_back():
        with lock:
            lock.release()
            time.sleep(0.2)
            lock.acquire()

    def holds():
        time.sleep(0.1)
        lock.acquire()
        time.sleep(3600)

    start(gives_back, holds)
    time.sleep(0.3)
    settle()
    ready(hex(id(lock)))
    until_input_ends()


def queue_idle(count):
    jobs = queue.Queue()

    def worker():
        def step(n):
            return step(n - 1) if n else jobs.get()
        while True:
            step(5)

    listener = socket.create_server(("127.0.0.1", 0))
    start(*[worker] * count)
    threading.Thread(target=until_input_ends, daemon=True).start()
    settle()
    ready()
    while True:
        listener.accept()


def rlock_busy(count):
    """Healthy: locks in a fixed order, handed over all the time."""
    first, second = threading.RLock(), threading.RLock()

    def works():
        while True:
            with first:
                with second:
                    with first:
                        time.sleep(0.0001)

    start(*[works] * count)
    ready()
    until_input_ends()


def lock_busy(count):
    """Healthy: half take both locks in order, half only the inner one."""
    outer, inner = threading.Lock(), threading.Lock()

    def takes_both():
        while True:
            with outer:
                with inner:
                    time.sleep(0.02)

    def takes_inner():
        while True:
            with inner:
                time.sleep(0.02)

    start(*[takes_both, takes_inner] * (count // 2))
    ready(hex(id(outer)), hex(id(inner)))
    until_input_ends()


def gil_busy(count):
    def computes():
        n = 0
        while True:
            n = sum(i * i for i in range(100)) + calls(n)

    def calls(n):
        return len(str([n] * 3))

    start(*[computes] * count)
    ready()
    until_input_ends()


def condition_wait():
    """A waiter gives back the lock of its condition, and no other."""
    other, lock = threading.Lock(), threading.Lock()
    condition = threading.Condition(lock)

    def waits_for_condition():
        with other:
            with lock:
                condition.wait()

    def waits_in_condition():
        with condition:
            condition.wait()

    def wants_other():
        time.sleep(0.1)
        with other:
            pass

    start(waits_for_condition, waits_in_condition, wants_other)
    settle()
    ready(hex(id(other)), hex(id(lock)))
    until_input_ends()


def condition_held():
    """A thread is inside `with condition` and holds its lock."""
    lock = threading.Lock()
    condition = threading.Condition(lock)

    def holds_condition():
        with condition:
            time.sleep(1000)

    def wants_lock():
        time.sleep(0.1)
        lock.acquire()

    start(holds_condition, wants_lock)
    settle()
    ready(hex(id(lock)))
    until_input_ends()


def timed_acquire():
    lock = threading.Lock()

    def waits_timed():
        lock.acquire(timeout=1000)

    lock.acquire()
    start(waits_timed)
    settle()
    ready(hex(id(lock)))
    until_input_ends()


def deep(count):
    def descends(n):
        return descends(n - 1) if n else event.wait()

    event = threading.Event()
    sys.setrecursionlimit(count + 100)
    start(lambda: descends(count))
    settle()
    ready()
    until_input_ends()


def names():
    """Characters of one, two and four bytes in names."""
    space = {"event": threading.Event()}
    for name in ("é_latin", "λ_greek", "𐐷_deseret"):
        exec(compile("def %s():\n    event.wait()\n" % name, "/tmp/" + name + ".py", "exec"), space)
        start(space[name])
    settle()
    ready()
    until_input_ends()


def forked():
    """A child that was forked while a thread held an RLock."""
    rlock = threading.RLock()

    def holds():
        with rlock:
            time.sleep(1000)

    start(holds)
    settle()
    warnings.simplefilter("ignore")
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: ends with its parent
        ready(hex(id(rlock)))
        rlock.acquire()
    until_input_ends()


def subinterpreter():
    """A second interpreter that waits, in a thread of the first."""
    try:
        import _interpreters
    except ImportError:
        import _xxsubinterpreters as _interpreters
    other = _interpreters.create()

    def runs_other():
        _interpreters.run_string(other, "def sleeps():\n    import threading\n    threading.Event().wait()\nsleeps()")

    start(runs_other)
    settle()
    ready()
    until_input_ends()


if __name__ == "__main__":
    mode = globals()[sys.argv[1].replace("-", "_")]
    mode(*map(int, sys.argv[2:]))
