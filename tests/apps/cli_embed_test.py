#!/usr/bin/env python3
"""Tests `wick embed`: which text each line of its output belongs to, and when it is printed. See cli.py."""
import signal
import subprocess
import sys

from cli import ARGS, Cli, main


class Embed(Cli):
    def test_lines_keep_their_places(self):
        text = self.folder / "lines"
        text.write_bytes(b"the hat\r\nthe can\n \nthe hat")
        rows = self.ok("embed", "-m", self.model, "a hat", "-f", str(text))[0].splitlines()
        self.assertEqual(len(rows), 5)
        self.assertEqual(rows[1], rows[4])
        self.assertEqual(len(set(rows)), 4)
        report = self.json("embed", "-m", self.model, "a hat", "-f", str(text))
        self.assertEqual([" ".join(row.split(", ")) for row in map(lambda r: str(r)[1:-1], report["embeddings"])],
                         [" ".join(map(str, map(float, row.split()))) for row in rows])

    def test_errors_name_the_text(self):
        text = self.folder / "lines"
        long = b"the hat " * 1000
        for lines, says in [(b"the hat\nthe can\n" + b"the hat " * 60 + b"\nthe\n", "too many tokens"),
                            (b"the hat\nthe can\n\nthe", "no tokens\n"),
                            (b"the hat\nthe can\n\xff\n", "tokenize: invalid UTF-8")]:
            text.write_bytes(lines)
            self.fails("embed", "-m", self.model, "-f", str(text), says=f"wick: {text}: line 3: {says}")
            self.fails("embed", "-m", self.model, "--json", "-f", str(text), says=f"wick: {text}: line 3: {says}")
            self.fails("embed", "-m", self.model, "one", "-f", str(text), says=f"wick: {text}: line 3: {says}")
        self.fails("embed", "-m", self.model, "-f", "-", stdin=f"the\n{long.decode()}", says="wick: stdin: line 2: too many tokens: ")
        self.fails("embed", "-m", self.model, "a", long.decode(), says="wick: TEXT 2: too many tokens: ")

    def test_sizes(self):
        whole = self.ok("embed", "-m", self.model, "--raw", "the hat")[0].split()
        self.assertEqual(self.ok("embed", "-m", self.model, "--raw", "--size", "3", "the hat")[0].split(), whole[:3])
        for size in ["0", "-1", str(len(whole) + 1)]:
            self.fails("embed", "-m", self.model, "--size", size, "the hat", says="size out of range: " + size)

    def test_rows_are_printed_as_they_are_done(self):
        """Ctrl-C after the first row ends the work, whose other rows would take much longer."""
        text = self.folder / "many"
        text.write_text("the hat and the can and the hat and the can and the hat\n" * 20000)
        for option in ([], ["--json"]):
            with subprocess.Popen([ARGS.wick, "embed", "-m", self.model, "-f", str(text), *option],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                first = process.stdout.readline()
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, err), (130, b""))
            self.assertTrue(first)
            self.assertLess(out.count(b"\n"), 15000)


if __name__ == "__main__":
    sys.exit(main())
