#!/usr/bin/env python3
"""Tests the wick command when it is interrupted, or when the reader of its output exits. See cli.py."""
import json
import os
import signal
import subprocess
import sys
import time

from cli import ARGS, Cli, main

WARNING = rb"wick: warning: --ctx: [^\n]+\n"  # for a context longer than the model was trained for
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def defaults():
    """Restores the signals that nohup and some shells ignore: SIGHUP and SIGINT."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def sleeping(process):
    """Waits until the process waits for input, that is, uses no CPU for a fraction of a second."""
    def ticks():
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return fields[0], int(fields[11]) + int(fields[12])
    before, since = ticks(), time.monotonic()
    while time.monotonic() - since < 0.3:
        time.sleep(0.02)
        now = ticks()
        if now != before or now[0] != "S":
            before, since = now, time.monotonic()


class Interrupts(Cli):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = cls.folder / "long"
        cls.text.write_text("the hat and the can, then a ham. " * 300_000)
        cls.big = cls.folder / "big.gguf"

    def start(self, *args, **kwargs):
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.PIPE}
        return subprocess.Popen([ARGS.wick, *args], preexec_fn=defaults, **{**streams, **kwargs})

    def endless(self, *args):
        return self.start("generate", "-m", self.model, "-p", "the", "-n", "-1", "--ctx", "1000000",
                          "--ignore-eos", *args)

    def stops(self, process, number=signal.SIGINT, within=2.0):
        """Checks that a signal ends the process soon, with exit code 128 + its number and no message."""
        start = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
        self.assertEqual((process.returncode, err), (128 + number, b""), process.args)
        slower = 5 if os.environ.get("WICK_TEST_SANITIZED") else 1
        self.assertLess(time.monotonic() - start, within * slower, process.args)

    def test_generate(self):
        for number in SIGNALS:
            process = self.endless()
            self.assertEqual(process.stdout.read(20)[:3], b"the")
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 128 + number)
            self.assertTrue(out.endswith(b"\n"))
            self.assertRegex(err, rb"\A" + WARNING +
                             rb"\nprompt \d+ tokens.* \| generated \d+ tokens.*\n\Z")

    def test_generate_json(self):
        process = self.endless("--json")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(err, rb"\A" + WARNING + rb"\Z")
        self.assertEqual(json.loads(out)["finish"], "interrupted")

    def test_generate_whose_reader_reads_nothing(self):
        process = self.endless()
        time.sleep(1)  # the pipe is full, and the command waits
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=5), 130)
        process.communicate()

    def test_every_command_at_work(self):
        for args in [["bench", "-m", self.model, "-n", "1000000"],
                     ["perplexity", "-m", self.model, "-f", str(self.text)],
                     ["perplexity", "-m", self.model, "-f", str(self.text), "--json"]]:
            for number in SIGNALS:
                process = self.start(*args)
                time.sleep(0.5)
                self.stops(process, number)
        chat = self.start("chat", "-m", self.model, "-n", "-1", "--ctx", "250", "--temp", "9")
        chat.stdin.write(b"hat\n/clear\n" * 5000)
        chat.stdin.flush()
        time.sleep(0.5)
        chat.send_signal(signal.SIGINT)
        _, err = chat.communicate(timeout=30)
        self.assertEqual(chat.returncode, 130)
        self.assertNotIn(b"wick:", err)

    def test_commands_whose_output_waits(self):
        """Tokens of a long text, and reports, written to a full pipe."""
        for args in [["tokenize", "-m", self.model, "-f", str(self.text)],
                     ["tokenize", "-m", self.model, "-f", str(self.text), "--json"]]:
            process = self.start(*args)
            self.assertGreater(len(process.stdout.read(10)), 0)
            self.stops(process)

    def test_tokenize_at_work(self):
        for seconds in [0.02, 0.1, 0.3]:
            with open(os.devnull, "wb") as out:
                process = self.start("tokenize", "-m", self.model, "-f", str(self.text), stdout=out)
                time.sleep(seconds)
                if process.poll() is None:
                    self.stops(process)
                process.communicate()

    def test_every_command_that_reads(self):
        """Standard input is a pipe or a terminal; a FIFO is open, or has no writer."""
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        commands = [["generate", "-n", "4"], ["tokenize"], ["tokenize", "--json"], ["perplexity"]]
        for command, *rest in commands:
            for number in SIGNALS:
                process = self.start(command, "-m", self.model, "-f", "-", *rest)
                process.stdin.write(b"the hat")
                process.stdin.flush()
                sleeping(process)
                self.stops(process, number)
            process = self.start(command, "-m", self.model, "-f", str(fifo), *rest)
            sleeping(process)
            self.stops(process)  # while it opens the FIFO
            process = self.start(command, "-m", self.model, "-f", str(fifo), *rest)
            with open(fifo, "wb", buffering=0) as writer:
                writer.write(b"the hat")
                sleeping(process)
                self.stops(process)
            master, slave = os.openpty()
            process = self.start(command, "-m", self.model, "-f", "-", *rest, stdin=slave)
            os.write(master, b"the hat\n")
            sleeping(process)
            self.stops(process)
            os.close(slave)
            os.close(master)
        process = self.start("chat", "-m", self.model)
        sleeping(process)
        self.stops(process)

    def test_a_stopped_command_goes_on(self):
        process = self.start("tokenize", "-m", self.model, "-f", "-")
        process.stdin.write(b"the ")
        process.stdin.flush()
        sleeping(process)
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(b"hat", timeout=30)
        self.assertEqual((process.returncode, err), (0, b""))
        self.assertIn(b'"th"', out)

    def test_quantize_leaves_nothing(self):
        subprocess.run([sys.executable, "-c", BIG, str(self.folder / "tiny-f32.gguf"), str(self.big)],
                       check=True)
        files = sorted(self.folder.iterdir())
        for number in SIGNALS:
            for seconds in [0.1, 0.4]:
                process = self.start("quantize", str(self.big), str(self.folder / "out.gguf"), "q4_0",
                                     "-t", "1")
                time.sleep(seconds)
                self.assertIsNone(process.poll(), "the file is too small for this machine")
                self.stops(process, number)
                self.assertEqual(sorted(self.folder.iterdir()), files)

    def test_ignored_signals_stay_ignored(self):
        """Shells start background commands with SIGINT ignored, and nohup ignores SIGHUP."""
        for number in SIGNALS:
            def before(ignored=number):
                defaults()
                signal.signal(ignored, signal.SIG_IGN)
            args = [ARGS.wick, "tokenize", "-m", self.model, "-f", "-"]
            with subprocess.Popen(args, preexec_fn=before, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                sleeping(process)
                process.send_signal(number)
                out, _ = process.communicate(b"the hat", timeout=30)
            self.assertEqual(process.returncode, 0, number)
            self.assertIn(b'"th"', out)

    def test_twice_ends_at_once(self):
        process = self.endless()
        process.stdout.read(20)
        process.send_signal(signal.SIGSTOP)  # both signals arrive before it can handle the first
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertNotIn(b"generated", err)


BIG = """
import pathlib, struct, sys
# A GGUF file of one f32 tensor of 1 GiB, a hole in the file: zeros.
name, rows, columns = b"blk.0.ffn_up.weight", 65536, 4096
head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
head += struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, columns, rows, 0, 0)
head += bytes(-len(head) % 32)
with open(sys.argv[2], "wb") as file:
    file.write(head)
    file.truncate(len(head) + 4 * rows * columns)
"""


class Pipes(Cli):
    """If the reader of its output exits, SIGPIPE ends the command without a message, as in other programs."""

    def ends(self, *args, read=10, ignore=False):
        def before():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignore else signal.SIG_DFL)
        reader, writer = os.pipe()
        if not read:
            os.close(reader)  # before the command can write
        process = subprocess.Popen([ARGS.wick, *args], stdout=writer, stderr=subprocess.PIPE,
                                   stdin=subprocess.PIPE, restore_signals=False, preexec_fn=before)
        os.close(writer)
        if read:
            os.read(reader, read)
            os.close(reader)
        try:
            process.stdin.write(b"hat\n" * 100)
            process.stdin.close()
        except BrokenPipeError:
            pass  # commands that don't read their input
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=30), -signal.SIGPIPE, (args, err))
        self.assertNotIn(b"stdout", err)
        self.assertNotIn(b"roken", err)
        return err

    def test_endless_text(self):
        for ignore in [False, True]:
            err = self.ends("generate", "-m", self.model, "-p", "the", "-n", "-1", "--ctx", "1000000",
                            "--ignore-eos", ignore=ignore)
            self.assertRegex(err, rb"\A" + WARNING + rb"\Z")

    def test_every_command(self):
        text = self.folder / "long"
        text.write_text("the hat and the can, then a ham. " * 20_000)
        source, target = str(self.folder / "tiny-f32.gguf"), str(self.folder / "out.gguf")
        for args in [["generate", "-m", self.model, "-p", "the"], ["chat", "-m", self.model, "-n", "4"],
                     ["bench", "-m", self.model, "-p", "8", "-n", "2", "-r", "1"],
                     ["perplexity", "-m", self.model, "-f", str(text)],
                     ["tokenize", "-m", self.model, "-f", str(text)], ["inspect", self.model],
                     ["quantize", source, target, "q8_0"], ["devices"], ["help"], ["--help"],
                     ["--version"], ["help", "chat"]]:
            jsons = [[], ["--json"]] if args[0] not in ["chat", "help", "--help", "--version"] else [[]]
            for extra in jsons:
                # Nothing has been read when the command writes.
                self.ends(*args, *extra, read=0)
        for args in [["tokenize", "-m", self.model, "-f", str(text)],
                     ["tokenize", "-m", self.model, "-f", str(text), "--json"]]:
            self.ends(*args)

    def test_in_a_shell(self):
        text = self.folder / "long"
        text.write_text("the hat and the can, then a ham. " * 20_000)
        for flag in ["", "--json"]:
            done = subprocess.run(
                ["bash", "-c", f'set -o pipefail; "$0" tokenize -m "$1" -f "$2" {flag} | head -n 2',
                 ARGS.wick, self.model, str(text)], capture_output=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (141, b""))
            self.assertEqual(len(done.stdout.splitlines()), 2)


if __name__ == "__main__":
    sys.exit(main())
