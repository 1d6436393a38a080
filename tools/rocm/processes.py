"""Child processes that end with this one: on Ctrl-C, SIGTERM or SIGHUP each is killed with all of its own children."""

import contextlib
import os
import signal
import subprocess
import threading

import fetch_model
from rocm.errors import RocmError, Unreachable

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def kill_group(child):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


@contextlib.contextmanager
def child_of(command, **options):
    """Starts a program, and kills it with its children if an exception ends the block."""
    started, failed = [], []

    def start():
        try:
            started.append(subprocess.Popen(command, start_new_session=True, **options))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=start)  # signals interrupt the main thread only, not the start of a program
    try:
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        yield started[0]
    except BaseException:
        if thread.ident is not None:
            thread.join()
        for child in started:
            kill_group(child)
            with child:  # waits for it and closes its pipes
                pass
        raise


def call(command, env=None, patience=None, check=None):
    """Runs a program and returns what became of it. check() is called each `patience` seconds; it may raise an error."""
    with child_of(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                  errors="replace") as child:
        while True:
            try:
                out, err = child.communicate(timeout=patience)
                return subprocess.CompletedProcess(command, child.returncode, out, err)
            except subprocess.TimeoutExpired:
                check()


def run(command, env):
    """Runs a program with this process's input and output. Returns its exit status: 128 + its number after a signal."""
    with child_of(command, env=env) as child:
        code = child.wait()
    return code if code >= 0 else 128 - code


def compile_c(compiler, source, target, *options):
    """Compiles a program or library. The compiler's temporary files are in the target's folder."""
    done = call([compiler, str(source), "-o", str(target), *options], env=dict(os.environ, TMPDIR=str(target.parent)))
    if done.returncode != 0:
        raise RocmError(f"{source.name} can't be compiled: {(done.stderr.strip().splitlines() or ['no reason was given'])[0]}")


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


def guarded(name, work):
    """Returns the exit status of a command's work: 2 after a failure, SKIPPED if a server can't be reached, and 128 + the
    signal's number after a signal, each with one line."""
    caught = []

    def interrupt(number, _):
        for each in SIGNALS:  # cleaning up isn't interrupted; Python complains if it ignores a signal that has come
            signal.signal(each, lambda *_: None)
        caught.append(number)
        raise KeyboardInterrupt

    for number in SIGNALS:
        signal.signal(number, interrupt)
    # A signal that comes just before the main thread blocks doesn't wake it; the timer does, and Python sees the signal then.
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    try:
        return work()
    except (fetch_model.FetchError, OSError) as error:
        fetch_model.say(f"{name}: {error}")
        return SKIPPED if isinstance(error, Unreachable) else 2
    except KeyboardInterrupt:
        Process.kill_all()
        fetch_model.say(f"{name}: interrupted")
        return 128 + (caught[0] if caught else signal.SIGINT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
