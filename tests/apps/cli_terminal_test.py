#!/usr/bin/env python3
"""Tests wick chat in a pseudo-terminal. See cli.py."""
import errno
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

from cli import ARGS, Cli, main

PATIENCE = 60 if os.environ.get("WICK_TEST_SANITIZED") else 20
UP, DOWN, LEFT, RIGHT, HOME, END = "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C", "\x1b[H", "\x1b[F"


class Chat:
    """Runs wick chat in a terminal with 80 columns. The number of prompt tokens shows what it received."""

    def __init__(self, model, *args, stdout=None, **env):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.settings = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [ARGS.wick, "chat", "-m", model, *args], stdin=self.slave,
            stdout=stdout or self.slave, stderr=self.slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **env})
        self.seen = ""
        self.raw = b""
        self.wait("> ")

    def feed(self, seconds):
        """Reads the terminal's output. Returns False at its end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            self.raw += os.read(self.master, 1 << 16)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            return False
        self.seen = self.raw.decode(errors="replace")
        return True

    def wait(self, text, count=1):
        """Waits until `text` has been shown `count` times since the last send()."""
        end = time.monotonic() + PATIENCE
        while self.seen.count(text) < count:
            assert time.monotonic() < end, f"no {text!r} in {self.seen[-2000:]!r}"
            assert self.process.poll() is None or self.seen.count(text) >= count, self.seen[-2000:]
            self.feed(0.1)
        return self.seen

    def write(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        while data:
            ready = select.select([self.master], [self.master], [], PATIENCE)
            assert ready[0] or ready[1], "the terminal takes nothing"
            if ready[0]:
                self.feed(0)
            if ready[1]:
                data = data[os.write(self.master, data[:1000]):]

    def send(self, text):
        self.raw, self.seen = b"", ""
        self.write(text)

    def say(self, line, shows="> "):
        """Sends a line and Enter. Returns the output up to the next prompt."""
        self.send(line)
        # The line is echoed while it is typed; the prompt appears on its own line.
        self.write("\r")
        end = time.monotonic() + PATIENCE
        while not re.search(r"\n\r?" + re.escape(shows) + r"\Z", self.seen):
            assert time.monotonic() < end, f"no prompt in {self.seen[-2000:]!r}"
            assert self.feed(0.1), self.seen[-2000:]
        return self.seen

    def end(self):
        """Waits for the process. Returns its exit code, and checks that the terminal's settings are restored."""
        limit = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < limit and self.feed(0.05):
            pass
        code = self.process.wait(timeout=PATIENCE)
        restored = termios.tcgetattr(self.slave) == self.settings
        os.close(self.slave)
        os.close(self.master)
        assert restored, "the terminal's settings aren't what they were"
        return code

    def quit(self):
        self.send("\x04")
        return self.end()


class Terminal(Cli):
    def chat(self, *args, **kwargs):
        return Chat(self.model, "-n", "4", "--temp", "0", *args, **kwargs)

    def tokens_of(self, line):
        """Returns the number of prompt tokens, as named in the error of a line that exceeds the context."""
        with_context = Chat(self.model, "--ctx", "16")
        seen = with_context.say(line)
        self.assertEqual(with_context.quit(), 0)
        found = re.search(r"prompt longer than the context: (\d+) tokens", seen)
        self.assertIsNotNone(found, seen[-500:])
        return int(found.group(1))

    def expected_tokens(self, line):
        turns = f"<|im_start|>user\n{line}<|im_end|>\n<|im_start|>assistant\n"
        return len(self.json("tokenize", "-m", self.model, "-p", turns)["tokens"])

    def assert_arrives(self, line, keys=None):
        """Checks that typing `keys` sends `line` to the model, by the number of its tokens."""
        self.assertEqual(self.tokens_of(keys or line), self.expected_tokens(line))

    def test_a_conversation(self):
        chat = self.chat()
        out = chat.say("hat")
        answer = self.ok("chat", "-m", self.model, "--temp", "0", "-n", "4", stdin="hat\n")[0].strip()
        self.assertIn(answer.split("\n")[0].strip(), out)
        self.assertEqual(chat.quit(), 0)

    def test_notes_have_lines_of_their_own(self):
        chat = self.chat("-v")
        out = chat.say("hat")
        note = r"\[ *\d+\.\d{3} s\] "
        self.assertIn("memory: at most", out)
        self.assertEqual(len(re.findall(note, out)), len(re.findall(r"\n" + note, out)), out)
        self.assertEqual(chat.quit(), 0)

    def test_ends(self):
        for keys in ["\x04", "/exit\r", "/quit\r"]:
            chat = self.chat()
            chat.send(keys)
            self.assertEqual(chat.end(), 0, keys)

    def test_the_terminal_goes_away(self):
        for number in [signal.SIGHUP, signal.SIGTERM]:
            chat = self.chat()
            chat.process.send_signal(number)
            self.assertEqual(chat.end(), 128 + number)

    def test_lines_of_any_length(self):
        for length in [4094, 4095, 4096, 5000, 20_000]:
            line = "the hat and the can " * (length // 20) + "a" * (length % 20)
            self.assert_arrives(line)

    def test_long_lines_typed_ahead(self):
        """Long lines also work while an answer is generated; the kernel's line editing would truncate them."""
        long = "the hat and the can" + " the hat and the can" * 600
        expected = self.expected_tokens(long)
        for number in [1, 3]:
            chat = Chat(self.model, "--ctx", "64", "-n", "40", "--temp", "0")
            chat.send("hat\r/clear\r" + (long + "\r") * number)
            seen = chat.wait("longer than the context: ", number)
            self.assertEqual(re.findall(r"longer than the context: (\d+) tokens", seen),
                             [str(expected)] * number)
            self.assertEqual(chat.quit(), 0)

    def test_utf8(self):
        for line in ["é", "日本語", "a\u0301", "🙂🙂", "naïve 🙂 and 日本 text", "\u00a0"]:
            self.assert_arrives(line)
        # An invalid byte becomes a replacement character, also in the middle of a sequence.
        for keys in [b"a\xffb", b"a\xc3b", b"a\xe6\x97b", b"a\xc0b"]:
            self.assert_arrives("a\ufffdb", keys)

    def test_utf8_without_a_locale(self):
        for name in ["C", "POSIX", "", "xx_YY.UTF-8"]:
            chat = self.chat(LC_ALL=name)
            seen = chat.say("é日🙂")
            self.assertIn("é日🙂", seen)
            self.assertNotIn("�", seen.split("\n")[0])
            self.assertEqual(chat.quit(), 0)

    def test_keys(self):
        the = "the hat and the can the hat and the can"
        for keys, line in [("hat" + LEFT + LEFT + "x", "hxat"), ("hat" + HOME + "x", "xhat"),
                           ("hat" + HOME + RIGHT + "x", "hxat"), ("hat" + HOME + END + "x", "hatx"),
                           ("hatxx\x7f\x7f", "hat"), ("日本\x7f", "日"), ("é" + LEFT + "日", "日é"),
                           ("nothing\x15hat", "hat"), ("\x1b[", "")]:
            suffix = " " + the  # long enough to cause the error that counts tokens
            if not line:
                continue
            self.assert_arrives(line + suffix, keys + END + suffix)

    def test_history(self):
        first, second = "hat" + " and the can" * 5, "can" + " and a hat, then the ham" * 5
        chat = Chat(self.model, "--ctx", "16")
        counts = {line: self.expected_tokens(line) for line in [first, second]}
        # Consecutive equal lines are stored once.
        for keys, line in [(first, first), (second, second), (UP, second), (UP + UP, first),
                           (UP * 3 + DOWN, second), ("\x1bOA", second), ("\x10\x10\x0e", second)]:
            seen = chat.say(keys)
            self.assertIn(f"longer than the context: {counts[line]} tokens", seen, repr(keys))
            self.assertNotIn("^[[", seen)
        self.assertEqual(chat.quit(), 0)

    def test_interrupt_drops_the_line(self):
        chat = self.chat()
        for _ in range(5):
            chat.send("the hat")
            chat.wait("hat")
            chat.write("\x03")
            chat.wait("> ")
        seen = chat.say("/nonsense")
        self.assertIn("'/nonsense'", seen)
        self.assertEqual(chat.quit(), 0)

    def test_interrupt_stops_the_answer(self):
        chat = Chat(self.model, "-n", "-1", "--ctx", "1000000", "--temp", "9")
        for _ in range(3):
            chat.send("hat\r")
            chat.wait("\n", 2)
            time.sleep(0.2)
            chat.write("\x03")
            chat.wait("> ")
            chat.say("/clear")
        self.assertEqual(chat.quit(), 0)

    def test_stop_and_go_on(self):
        chat = self.chat()
        chat.send("the ha")
        chat.wait("ha")
        for number in [signal.SIGTSTP, signal.SIGSTOP]:
            chat.process.send_signal(number)
            time.sleep(0.2)
            chat.process.send_signal(signal.SIGCONT)
        time.sleep(0.2)
        fcntl.ioctl(chat.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        chat.process.send_signal(signal.SIGWINCH)
        time.sleep(0.2)
        chat.write("t\r")
        chat.wait("> ", 2)
        self.assertEqual(chat.quit(), 0)

    def test_slash_commands(self):
        chat = self.chat()
        for line in ["/nonsense", "/cl", "/", "/clear all", "/usr/bin/env", "/CLEAR"]:
            seen = chat.say(line)
            self.assertIn(f"wick: chat: unknown command: '{line.split(' ')[0]}': /help lists the commands; "
                          "// sends a message with one /", seen.replace("\r\n", ""))
        self.assertIn("//text", chat.say("/help"))
        self.assertNotIn("wick:", chat.say("/clear  "))
        self.assertEqual(chat.quit(), 0)
        self.assert_arrives("/the hat and the can", "//the hat and the can")
        self.assert_arrives(" /the hat and the can")

    def test_slash_commands_in_a_pipe(self):
        for line in ["/nonsense", "/usr/bin/env hat"]:
            self.fails("chat", "-m", self.model, stdin=f"{line}\n",
                       says=f"chat: unknown command: '{line.split()[0]}': /help lists")
        lines = [self.ok("chat", "-m", self.model, "-n", "4", stdin=text)[0] for text in ("hat\n", "hat\r\n")]
        self.assertEqual(*lines)
        literal, _ = self.ok("chat", "-m", self.model, "-n", "4", stdin="//hat\n")
        self.assertGreater(len(literal), 0)
        _, err = self.ok("chat", "-m", self.model, stdin="/help\n")
        self.assertIn("/clear", err)

    def test_a_full_context(self):
        chat = Chat(self.model, "--ctx", "40", "-n", "-1", "--temp", "9")
        seen = ""
        for _ in range(10):
            seen = chat.say("the hat")
            if "longer than the context" in seen:
                break
        flat = seen.replace("\r\n", "")
        self.assertRegex(flat, r"wick: chat: prompt longer than the context: \d+ tokens, 40 positions: "
                               r"start a new conversation with /reset, or a longer context with --ctx")
        chat.say("/clear")
        self.assertNotIn("wick:", chat.say("the hat"))
        seen = chat.say("the hat and the can " * 10)
        self.assertIn("/reset", seen)
        chat.say("/clear")
        self.assertIn("shorten the message", chat.say("the hat and the can " * 10))
        self.assertNotIn("wick:", chat.say("the hat"))
        self.assertEqual(chat.quit(), 0)

    def test_odd_terminals(self):
        for term in ["dumb", "", "no-such-terminal", "xterm-256color", "vt100"]:
            chat = self.chat(TERM=term)
            self.assertNotIn("wick:", chat.say("hat"))
            self.assertEqual(chat.quit(), 0)

    def test_stdout_that_is_a_file(self):
        file = self.folder / "answers"
        with open(file, "wb") as out:
            chat = self.chat(stdout=out)
            chat.say("hat")
            self.assertEqual(chat.quit(), 0)
        self.assertNotIn("> ", file.read_text())
        self.assertGreater(file.stat().st_size, 1)

    def test_templates(self):
        """The file's template is evaluated. A file without one gives a warning, a wrong one an error."""
        model = self.folder / "template.gguf"

        def answer(template, **more):
            replace_string(pathlib.Path(self.model), model, b"tokenizer.chat_template", template)
            return self.ok("chat", "-m", str(model), "-n", "8", "--temp", "0", stdin="hat\n", **more)

        own = answer(b"{{ 'the can' }}")
        expected, _ = self.ok("generate", "-m", self.model, "-p", "the can", "-n", "8", "--temp", "0")
        self.assertEqual("the can" + own[0], expected)
        self.assertEqual(own[1], "")
        replace_string(pathlib.Path(self.model), model, b"tokenizer.chat_template",
                       b"a\n{% if messages[0].role != 'system' %}{{ raise_exception('no system') }}{% endif %}")
        self.fails("chat", "-m", str(model), stdin="hat\n", says="chat template: no system: line 2, ")
        replace_string(pathlib.Path(self.model), model, b"tokenizer.chat_template", b"\n\n{% for %}")
        self.fails("chat", "-m", str(model), stdin="hat\n", says="chat template: expected a name: line 3, ")

    def test_system(self):
        """--system and /system give the same conversation; /system alone shows the text."""
        options = ["-m", self.model, "-n", "4", "--temp", "0"]
        given, _ = self.ok("chat", *options, "--system", "the hat", stdin="can\n")
        typed, err = self.ok("chat", *options, stdin="/system the hat\n/system\ncan\n")
        self.assertEqual(given, typed)
        self.assertIn("the hat\n", err)
        plain, _ = self.ok("chat", *options, stdin="can\n")
        none, _ = self.ok("chat", *options, "--system", "x", stdin='/system ""\ncan\n')
        self.assertEqual(plain, none)

    def test_save_and_load(self):
        """A saved conversation continues as if it hadn't ended."""
        file = self.folder / "talk.json"
        options = ["-m", self.model, "-n", "4", "--temp", "0"]
        whole, _ = self.ok("chat", *options, "--system", "the", stdin="hat\ncan\n")
        first, err = self.ok("chat", *options, "--system", "the", stdin=f"hat\n/save {file}\n")
        self.assertIn("3 messages", err)
        rest, err = self.ok("chat", *options, stdin=f"x\n/load {file}\ncan\n")
        self.assertIn("3 messages", err)
        self.assertTrue(whole.startswith(first))
        self.assertTrue(rest.endswith(whole[len(first):]))
        messages = json.loads(file.read_text())["messages"]
        self.assertEqual([m["role"] for m in messages], ["system", "user", "assistant"])
        self.assertEqual([m["content"] for m in messages[:2]], ["the", "hat"])
        for wrong, says in [("[1]", "message 0"), ("{}", "messages"), ("[{\"role\": \"user\"}]", "content"),
                            ("{", "JSON"), ("[" * 5000, "JSON"), ("\xff", "JSON")]:
            file.write_text(wrong, encoding="latin-1")
            self.fails("chat", *options, stdin=f"/load {file}\n", says=says)
        for content in [5, 2.5, True, {"type": "text"}]:
            file.write_text(json.dumps({"messages": [{"role": "user", "content": content}]}))
            self.fails("chat", *options, stdin=f"/load {file}\n",
                       says=f"{file}: content of message 0 is malformed: {json.dumps(content, separators=(',', ':'))}: need text, a list of parts or null")
        self.fails("chat", *options, stdin="/load /no/such/file\n", says="/no/such/file")
        self.fails("chat", *options, stdin="/save /no/such/file\n", says="/no/such/file")
        self.fails("chat", *options, stdin="/save\n", says="/save FILE")

    def test_params(self):
        """/params shows the sampling parameters, and sets some."""
        options = ["-m", self.model, "-n", "8"]
        set_, err = self.ok("chat", *options, "--temp", "9", stdin="/params temperature=0 top_k=1\n/params\nhat\n")
        given, _ = self.ok("chat", *options, "--temp", "0", stdin="hat\n")
        self.assertEqual(set_, given)
        self.assertIn("temperature=0 top_k=1 top_p=0.95 ", err)
        _, err = self.ok("chat", *options, "--mirostat", "2", "--samplers", "top_k", stdin="/params typical_p=0.5\n/params\n")
        self.assertIn(" typical_p=0.5 mirostat=2 ", err)
        self.assertIn(" samplers=top_k", err)
        self.fails("chat", *options, stdin="/params dry_multiplier=1\n", says="dry_multiplier can't be set now")
        few, _ = self.ok("chat", "-m", self.model, "--temp", "0", stdin="/params max_tokens=2\nhat\n")
        two, _ = self.ok("chat", "-m", self.model, "--temp", "0", "-n", "2", stdin="hat\n")
        self.assertEqual(few, two)
        for wrong in ["heat=1", "temperature", "temperature=x", "temperature=-1", "top_p=2", "top_k=1.5", "max_tokens=-2"]:
            self.fails("chat", *options, stdin=f"/params {wrong}\n", says=wrong.split("=")[0])

    def test_reset(self):
        """/reset forgets the messages, and keeps the system message."""
        options = ["-m", self.model, "-n", "4", "--temp", "0", "--system", "the"]
        once, _ = self.ok("chat", *options, stdin="hat\n")
        twice, _ = self.ok("chat", *options, stdin="hat\n/reset\nhat\n")
        self.assertEqual(twice, once + once)

    def test_generate_chat(self):
        """generate --chat answers one message, as chat does."""
        options = ["-m", self.model, "-n", "6", "--temp", "0"]
        said, _ = self.ok("chat", *options, "--system", "the", stdin="hat\n")
        made, _ = self.ok("generate", *options, "--chat", "--system", "the", "-p", "hat")
        self.assertEqual(made, said)
        self.fails("generate", *options, "--system", "the", "-p", "hat", says="--chat")

    def test_the_library_is_the_commands_alone(self):
        """The line editor isn't linked to the library or the Python package."""
        folder = pathlib.Path(ARGS.wick).parent.parent
        for file in [*folder.glob("lib/libwick*.so"), *folder.glob("python/wick/*.so")]:
            needed = subprocess.run(["readelf", "-d", str(file)], capture_output=True, check=True).stdout
            self.assertNotIn(b"libedit", needed, file)


def replace_string(source, target, key, value):
    """Writes a copy of a GGUF file with another value of a string key and aligned tensors."""
    data = source.read_bytes()
    at = data.index(struct.pack("<Q", len(key)) + key) + 8 + len(key) + 4
    size = struct.unpack_from("<Q", data, at)[0]
    head, tail = data[:at], data[at + 8 + size:]
    # Spaces inside a comment make the length differ from the old one by a multiple of the alignment.
    pad = -(len(value) - size) % 32
    if 0 < pad < 5:
        pad += 32
    value += b"{#" + b" " * (pad - 4) + b"#}" if pad else b""
    target.write_bytes(head + struct.pack("<Q", len(value)) + value + tail)


if __name__ == "__main__":
    sys.exit(main())
