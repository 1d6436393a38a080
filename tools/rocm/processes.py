"""Child processes that end with this one: on Ctrl-C, SIGTERM or SIGHUP each is killed with all of its own children."""

import argparse
import os
import signal
import subprocess
import threading

import fetch_model
from rocm.packages import RocmError, Unreachable

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def kill_group(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Process:
    """A program whose output is read line by line, and which ends with its time."""

    running, lock, stopped = set(), threading.Lock(), False

    def __init__(self, command, env, seconds):
        with self.lock:  # kill_all() finds the child, or none is started after it
            if Process.stopped:
                raise RocmError("interrupted")
            self.child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
            self.running.add(self.child)
        self.out_of_time = False
        self.timer = threading.Timer(seconds, self.expire)
        self.timer.daemon = True
        self.timer.start()

    def expire(self):
        self.out_of_time = True
        kill_group(self.child)

    @classmethod
    def kill_all(cls):
        with cls.lock:
            cls.stopped = True
            for child in cls.running:
                kill_group(child)

    def lines(self):
        with self.child.stdout:
            for line in self.child.stdout:
                yield line.rstrip("\n")
        self.child.wait()
        self.timer.cancel()
        with self.lock:
            self.running.discard(self.child)

    def end(self):
        """How the process ended, in words."""
        if self.out_of_time:
            return "its time was over"
        code = self.child.returncode
        return f"signal {-code} ended it" if code < 0 else f"it ended with {code}"


def positive(text):
    """The type of options that are numbers of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} isn't a number of at least 1")
    return number


def guarded(name, work):
    """Returns the exit status of a command's work: 2 after a failure, SKIPPED if a server can't be reached, and 128 + the
    signal's number after a signal, each with one line."""
    caught = []

    def interrupt(number, _):
        for each in SIGNALS:  # cleaning up isn't interrupted
            signal.signal(each, signal.SIG_IGN)
        caught.append(number)
        raise KeyboardInterrupt

    for number in SIGNALS:
        signal.signal(number, interrupt)
    # A signal that comes just before the main thread blocks doesn't wake it; the timer does, and Python sees the signal then.
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    try:
        return work()
    except (RocmError, OSError) as error:
        fetch_model.say(f"{name}: {error}")
        return SKIPPED if isinstance(error, Unreachable) else 2
    except KeyboardInterrupt:
        Process.kill_all()
        fetch_model.say(f"{name}: interrupted")
        return 128 + (caught[0] if caught else signal.SIGINT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
