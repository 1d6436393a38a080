#!/usr/bin/env python3
"""Tests tools/real_rocm.py without a network: packages come from a server in this process. Usage: real_rocm_test.py ROOT"""

import functools
import hashlib
import http.server
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "tools"))

from rocm import amd_suites, errors, machine, packages, page, processes, suites, token_time, trees  # noqa: E402


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder. lie: what becomes of the packages that it serves."""

    lie = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.lie is None:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "100000000000")
        self.end_headers()
        try:
            while self.lie == "endless":
                self.wfile.write(b"x" * 65536)
            for _ in range(100):
                time.sleep(0.1)
                self.wfile.write(b"x" if self.lie == "trickle" else b"")
        except OSError:
            return None


class Packages(unittest.TestCase):
    def setUp(self):
        if not os.access(packages.APT_HELPER, os.X_OK) or shutil.which("dpkg-deb") is None:
            self.skipTest("this machine has no apt or dpkg-deb")
        self.folder = pathlib.Path(self.enter(tempfile.TemporaryDirectory()))
        self.pool = self.folder / "mirror"
        self.pool.mkdir()
        self.cache = self.folder / "cache"
        handler = functools.partial(Server, directory=str(self.pool))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        os.environ["WICK_DEBIAN_MIRROR"] = f"http://127.0.0.1:{self.server.server_port}"
        self.lines = []
        for group in ("7.2.4", "rocr", "base"):
            self.add(group, {f"{packages.LIBRARIES}/lib{group}.so": group.encode()})
        self.patches, packages.PATCHES = packages.PATCHES, {}

    def tearDown(self):
        packages.PATCHES = getattr(self, "patches", packages.PATCHES)

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def add(self, group, files):
        """Builds a package with these files and adds it to the mirror and to the list."""
        tree = self.folder / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text(f"Package: p{group}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@a>\n"
                                             "Description: a\n")
        for name, content in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(content)
        deb = self.pool / f"p{group}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(deb)], check=True, capture_output=True)
        data = deb.read_bytes()
        self.lines.append(f"{group} {hashlib.sha256(data).hexdigest()} {len(data)} {deb.name}")
        self.list = self.folder / "list.txt"
        self.list.write_text("\n".join(self.lines) + "\n")

    def prepare(self):
        return packages.prepare("7.2.4", self.cache, self.list, quiet=True)

    def fails(self, *parts):
        with self.assertRaises(packages.RocmError) as caught:
            self.prepare()
        text = str(caught.exception)
        for part in parts:
            self.assertIn(part, text)
        self.assertNotIn("\n", text)
        self.nothing_is_left()

    def nothing_is_left(self):
        left = [path.name for path in self.cache.rglob(".*")] + [path.name for path in self.cache.rglob("*.part")]
        self.assertEqual(left, [])

    def test_packages_are_unpacked_once(self):
        folders = self.prepare()
        self.assertEqual([next(iter(folder.iterdir())).name for folder in folders],
                         ["lib7.2.4.so", "librocr.so", "libbase.so"])
        self.nothing_is_left()
        self.server.shutdown()  # nothing is fetched again
        self.assertEqual(self.prepare(), folders)

    def test_a_missing_package_is_named(self):
        (self.pool / "procr.deb").unlink()
        self.fails("procr.deb can't be had", "127.0.0.1", "404")

    def test_a_mirror_that_lies(self):
        self.addCleanup(setattr, Server, "lie", None)
        self.addCleanup(setattr, packages, "PATIENCE", packages.PATIENCE)
        self.addCleanup(setattr, packages, "SLOWEST", packages.SLOWEST)
        packages.SLOWEST = 1000
        for lie, patience, text in (("endless", 60, ": more than "), ("silence", 1, "nothing came in 1 s"),
                                    ("trickle", 4, "fewer than 1000 bytes a second came in 4 s")):
            Server.lie, packages.PATIENCE = lie, patience
            self.fails("p7.2.4.deb can't be had", text)

    def test_a_file_that_grows_for_ever(self):
        (self.cache / "folder").mkdir(parents=True)
        for command in (["sh", "-c", 'exec cat /dev/zero > "$TMPDIR/file"'],  # a signal ends it
                        [sys.executable, "-c", "import os; out = open(os.environ['TMPDIR'] + '/file', 'wb')\n"
                                               "while out.write(bytes(1 << 16)): pass"]):
            with self.assertRaisesRegex(packages.RocmError, "^more than 1000 bytes came$"):
                packages.call_download(command, self.cache / "folder", 1000)
            self.assertEqual(packages.size_of(self.cache / "folder"), 1000 + packages.SPARE)

    def test_what_apt_says(self):
        helper = self.folder / "helper"
        helper.write_text("#!/bin/sh\necho 'E: one' >&2; echo 'Err:1 two'; echo ' three' >&2; echo 'E: four' >&2; exit 100\n")
        helper.chmod(0o755)
        self.addCleanup(setattr, packages, "APT_HELPER", packages.APT_HELPER)
        packages.APT_HELPER = str(helper)
        self.fails("can't be had: http://127.0.0.1", ": one; four")

    def test_a_changed_folder_is_unpacked_again(self):
        library = self.prepare()[2] / "libbase.so"
        changes = [lambda: library.write_bytes(b"else"), library.unlink, lambda: os.utime(library),
                   lambda: (self.cache / "base" / trees.MARK).write_text("{}"),
                   lambda: (self.cache / "base" / trees.MARK).write_text('{"stamp": 5, "files": 5}')]
        for change in changes:
            change()
            self.assertEqual((self.prepare()[2] / "libbase.so").read_bytes(), b"base")
            self.nothing_is_left()
        (library.parent / "more").write_text("a new file")
        state = library.stat()
        self.prepare()
        self.assertEqual(library.stat(), state)

    def test_a_relative_cache(self):
        self.add("libs", {f"{packages.LIBRARIES}/libx.so": b"x"})
        folder = packages.prepare_groups(["libs"], os.path.relpath(self.cache), self.list, quiet=True)[0]
        self.assertTrue(folder.is_absolute())

    def test_a_changed_package_is_refused(self):
        data = bytearray((self.pool / "procr.deb").read_bytes())
        data[-1] ^= 1
        (self.pool / "procr.deb").write_bytes(data)
        self.fails("procr.deb can't be had", "SHA-256")
        self.assertFalse((self.cache / "packages/procr.deb").exists())
        self.assertFalse((self.cache / "rocr").exists())

    def test_half_a_package_is_refused(self):
        data = (self.pool / "procr.deb").read_bytes()
        (self.pool / "procr.deb").write_bytes(data[:len(data) // 2])
        self.fails("procr.deb can't be had", f"bytes came where {len(data)} are right")

    def test_a_wrong_file_in_the_cache_is_replaced(self):
        (self.cache / "packages").mkdir(parents=True)
        (self.cache / "packages/pbase.deb").write_bytes(b"half")
        self.assertEqual((self.prepare()[2] / "libbase.so").read_bytes(), b"base")

    def test_a_package_that_is_none_is_named(self):
        (self.pool / "procr.deb").write_bytes(b"no package")
        digest = hashlib.sha256(b"no package").hexdigest()
        self.lines[1] = f"rocr {digest} 10 procr.deb"
        self.list.write_text("\n".join(self.lines) + "\n")
        self.fails("procr.deb can't be unpacked")
        self.assertFalse((self.cache / "rocr").exists())

    def test_code_that_differs_is_not_patched(self):
        packages.PATCHES = {"rocr": ("librocr.so", 0, b"other", 0, 1)}
        self.fails("doesn't have the code")
        packages.PATCHES = {"rocr": ("librocr.so", 0, b"ro", 1, ord("0"))}
        self.assertEqual((self.prepare()[1] / "librocr.so").read_bytes(), b"r0cr")

    def test_an_interrupt_leaves_nothing(self):
        call = packages.call

        def interrupted(command, *arguments, **options):
            done = call(command, *arguments, **options)
            if command[0] == "dpkg-deb":
                raise KeyboardInterrupt
            return done

        packages.call = interrupted
        self.addCleanup(setattr, packages, "call", call)
        with self.assertRaises(KeyboardInterrupt):
            self.prepare()
        self.nothing_is_left()
        self.assertFalse((self.cache / "7.2.4").exists())

    def test_libraries_on_demand(self):
        with self.assertRaisesRegex(packages.RocmError, "no libraries for release 7.2.4"):
            packages.prepare("7.2.4", self.cache, self.list, libraries=True)
        self.add("libraries-7.2.4", {f"{packages.LIBRARIES}/librocblas.so.5": b"blas"})
        folders = packages.prepare("7.2.4", self.cache, self.list, quiet=True, libraries=True)
        self.assertEqual((folders[1] / "librocblas.so.5").read_bytes(), b"blas")
        self.assertEqual(len(self.prepare()), 3)

    def test_patterns_select_files(self):
        self.add("some", {f"{packages.LIBRARIES}/liba.so": b"a", f"{packages.LIBRARIES}/libb.so": b"b"})
        self.list.write_text("\n".join([*self.lines[:-1], self.lines[-1] + " */liba.so,*/no-such"]) + "\n")
        with self.assertRaisesRegex(packages.RocmError, "psome.deb can't be unpacked: .*no-such"):
            packages.prepare_groups(["some"], self.cache, self.list, quiet=True)
        self.nothing_is_left()
        self.assertFalse((self.cache / "some").exists())
        for pattern, names in (("*/liba.so", ["liba.so"]), ("*/libb.*", ["libb.so"])):  # other patterns unpack again
            self.list.write_text("\n".join([*self.lines[:-1], f"{self.lines[-1]} {pattern}"]) + "\n")
            folder = packages.prepare_groups(["some"], self.cache, self.list, quiet=True)[0]
            self.assertEqual([path.name for path in folder.iterdir()], names)

    def test_an_unknown_group_is_named(self):
        with self.assertRaisesRegex(packages.RocmError, "list.txt has no packages of the group none"):
            packages.prepare_groups(["base", "none"], self.cache, self.list, quiet=True)

    def test_a_broken_list_is_named(self):
        self.list.write_text("7.2.4 abc 5 x.deb\n")
        self.fails("list.txt, line 1")


class TheList(unittest.TestCase):
    def test_every_release_is_there(self):
        known = packages.read_list()
        for group in (*packages.RELEASES, "rocr", "base", "libraries-7.2.4"):
            self.assertTrue(packages.packages_of(group, known), group)
        names = [package.path for package in known]
        self.assertEqual(len(names), len(set(names)))


class Suites(unittest.TestCase):
    def run_script(self, text, kind, seconds=20):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "program.py"
            script.write_text(text)
            outcome = suites.Outcome()
            kind([sys.executable, str(script), "--gtest_filter=*"], dict(os.environ), seconds, outcome)
        return outcome

    def test_results_of_tests(self):
        text = """
print("[==========] Running 4 tests from 1 test suite.")
print("[ RUN      ] A.good"); print("[       OK ] A.good (1 ms)")
print("[ RUN      ] A.bad"); print("x.cpp:3: Failure"); print("[  FAILED  ] A.bad, where GetParam() = 1 (1 ms)")
print("[ RUN      ] A.none"); print("[  SKIPPED ] A.none (1 ms)")
print("[ RUN      ] A.said"); print("wick-emu: kernel k: no"); print("[       OK ] A.said (1 ms)")
print("[==========] 4 tests from 1 test suite ran. (4 ms total)")
print("[  FAILED  ] 1 test, listed below:"); print("[  FAILED  ] A.bad"); raise SystemExit(1)
"""
        outcome = self.run_script(text, suites.run_gtest)
        self.assertEqual((outcome.passed, outcome.failed, outcome.skipped), (1, 2, 1))
        self.assertEqual(outcome.why, ["A.bad: x.cpp:3: Failure", "A.said: wick-emu: kernel k: no"])

    def test_a_test_that_ends_the_process(self):
        text = """
import os, sys
out = sys.argv[-2].partition("=")[2].partition("-")[2].split(":")
names = [name for name in ("A.one", "A.ends", "A.two") if name not in out]
print(f"[==========] Running {len(names)} tests from 1 test suite.", flush=True)
for name in names:
    print(f"[ RUN      ] {name}", flush=True)
    if name == "A.ends": os.abort()
    print(f"[       OK ] {name} (1 ms)", flush=True)
print(f"[==========] {len(names)} tests from 1 test suite ran. (1 ms total)")
"""
        outcome = self.run_script(text, suites.run_gtest)
        self.assertEqual((outcome.passed, outcome.failed), (2, 1))
        self.assertIn("A.ends: signal 6 ended it", outcome.why[0])

    def gtest(self, wanted, ran, tests=("A.good",), before="", after=""):
        """The outcome of a program that says that it will run and has run so many tests, and runs these."""
        lines = [before, f'print("[==========] Running {wanted} tests from 1 test suite.")']
        lines += [f'print("[ RUN      ] {name}"); print("[       OK ] {name} (1 ms)")' for name in tests]
        if ran is not None:
            lines.append(f'print("[==========] {ran} tests from 1 test suite ran. (1 ms total)", flush=True)')
        return self.run_script("\n".join([*lines, after]), suites.run_gtest)

    def test_what_ends_between_tests(self):
        outcome = self.gtest(1, 1)
        self.assertEqual((outcome.passed, outcome.failed), (1, 0))
        for words, outcome in (("ended with 0 after 1 of 2 tests", self.gtest(2, 2)),
                               ("ended with 0 after 1 of 1 tests", self.gtest(1, 2)),
                               ("ended with 0 after 1 of 2 tests", self.gtest(2, None)),
                               ("signal 6 ended it", self.gtest(2, None, after="import os; os.abort()")),
                               ("signal 6 ended it", self.gtest(1, 1, after="import os; os.abort()")),
                               ("ended with 1", self.gtest(1, 1, after="raise SystemExit(1)")),
                               ("ended with 2", self.gtest(1, 1, after="raise SystemExit(2)")),
                               ("wick-emu: queue 0: no", self.gtest(1, 1, after="print('wick-emu: queue 0: no')")),
                               ("model: no", self.gtest(1, 1, before="print('model: no')"))):
            self.assertEqual((outcome.passed, outcome.failed), (1, 1), words)
            self.assertIn(words, outcome.why[0])
        outcome = self.gtest(0, 0, ())
        self.assertEqual((outcome.passed, outcome.failed), (0, 1))
        self.assertIn("no test ran", outcome.why[0])
        self.assertEqual(self.run_script("", suites.run_gtest).failed, 1)

    def test_the_last_test_ends_the_process(self):
        text = """
import os, sys
left = "A.ends" not in sys.argv[-2].partition("-")[2].partition("-")[2]
print(f"[==========] Running {int(left)} tests from 1 test suite.", flush=True)
if left:
    print("[ RUN      ] A.ends", flush=True)
    os.abort()
print("[==========] 0 tests from 0 test suites ran. (0 ms total)")
"""
        outcome = self.run_script(text, suites.run_gtest)
        self.assertEqual((outcome.passed, outcome.failed), (0, 1))
        self.assertIn("A.ends: signal 6 ended it", outcome.why[0])

    def test_the_time_of_a_suite(self):
        text = 'import time; print("[ RUN      ] A.slow", flush=True); time.sleep(60)'
        outcome = self.run_script(text, suites.run_gtest, 0.5)
        self.assertEqual((outcome.passed, outcome.failed), (0, 1))
        self.assertIn("its time was over", outcome.why[0])

    def test_a_program_that_does_not_start(self):
        outcome = self.run_script('print("no library"); raise SystemExit(127)', suites.run_gtest)
        self.assertEqual((outcome.passed, outcome.failed), (0, 1))
        self.assertIn("it ended with 127: no library", outcome.why[0])

    def test_the_status_of_a_program(self):
        for text, status in (("exit 3", 3), ("kill -SEGV $$", 128 + signal.SIGSEGV), ("kill -TERM $$", 128 + signal.SIGTERM)):
            self.assertEqual(processes.run(["sh", "-c", text], dict(os.environ)), status)
        with self.assertRaises(FileNotFoundError):
            processes.run(["/none"], dict(os.environ))

    def test_an_interrupt_ends_programs(self):
        text = 'import time; print("[ RUN      ] A.slow", flush=True); time.sleep(60)'
        self.addCleanup(setattr, processes.Process, "stopped", False)
        timer = threading.Timer(1, processes.Process.kill_all)
        timer.start()
        started = time.monotonic()
        with self.assertRaisesRegex(packages.RocmError, "interrupted"):  # no other process is started
            self.run_script(text, suites.run_gtest)
        self.assertLess(time.monotonic() - started, 15)

    def test_bits_of_a_probe(self):
        good = """print('[{"op": "a", "differ": {"v3": 0, "v4": 0}},')\n"""
        outcome = self.run_script(good, suites.run_probe)
        self.assertEqual((outcome.passed, outcome.failed), (1, 0))
        outcome = self.run_script(good + """print('{"op": "b", "differ": {"v3": 0, "v4": 7}}]'); raise SystemExit(1)\n""",
                                  suites.run_probe)
        self.assertEqual((outcome.passed, outcome.why), (1, ["b: 7 elements differ from the CPU's"]))
        self.assertEqual(self.run_script("", suites.run_probe).failed, 1)
        outcome = self.run_script("""print('{"op": "a", "differ": {"v3": 0}}wick-emu: kernel k: no')\n""", suites.run_probe)
        self.assertIn("wick-emu: kernel k: no", outcome.why[0])


class Signals(unittest.TestCase):
    """Programs that a signal ends while children of theirs sleep."""

    # Appends the numbers of two processes to the file `pids` and waits.
    SLEEPER = "#!/bin/sh\necho $$ >> {0}/pids; sleep 60 & echo $! >> {0}/pids; wait\n"
    HEAD = """
import pathlib, sys
sys.path.insert(0, {tools!r})
from rocm import packages, processes, report, suites
folder = pathlib.Path({folder!r})
"""

    def end(self, text, number, *arguments):
        """Starts a script, sends it the signal when its children sleep, and returns its status and what it said."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "program.py").write_text(self.HEAD.format(tools=str(ROOT / "tools"), folder=name) + text)
            (folder / "sleeper").write_text(self.SLEEPER.format(name))
            (folder / "sleeper").chmod(0o755)
            child = subprocess.Popen([sys.executable, str(folder / "program.py"), *arguments], stderr=subprocess.PIPE, text=True)
            until = time.monotonic() + 60
            while time.monotonic() < until and len(self.pids(folder)) < 2:
                time.sleep(0.05)
            for each in number if isinstance(number, tuple) else (number,):
                child.send_signal(each)
            said = child.communicate(timeout=60)[1]
            self.assertGreaterEqual(len(self.pids(folder)), 2)
            for pid in self.pids(folder):
                self.ends(pid)
            self.assertEqual(list((folder / "cache").rglob(".*")) + list((folder / "temporary").rglob("*")), [])
        return child.returncode, said

    def pids(self, folder):
        file = folder / "pids"
        return [int(word) for word in file.read_text().split()] if file.exists() else []

    def ends(self, pid):
        """Waits until a process has ended; one that nobody waits for stays as a zombie."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                if ") Z " in pathlib.Path(f"/proc/{pid}/stat").read_text():
                    return
            except (FileNotFoundError, ProcessLookupError):
                return
            time.sleep(0.05)
        self.fail(f"process {pid} still runs")

    def test_signals_end_suites(self):
        text = """
class Runner:
    def run(self, suite, release, chip):
        outcome = suites.Outcome()
        suites.run_gtest([str(folder / "sleeper"), "--gtest_filter=*"], None, 60, outcome)
        return outcome, 0

work = [(suite, "7.2.4", "gfx1100") for suite in suites.all_suites()]
sys.exit(processes.guarded("tool", lambda: report.run(Runner(), work, 2, 60, None)))
"""
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
            self.assertEqual(self.end(text, number), (status, "tool: interrupted\n"))
        self.assertEqual(self.end(text, processes.SIGNALS)[1], "tool: interrupted\n")

    def test_a_signal_ends_a_program_with_its_children(self):
        text = """
sys.exit(processes.guarded("tool", lambda: processes.run([str(folder / "sleeper")], None)))
"""
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
            self.assertEqual(self.end(text, number), (status, "tool: interrupted\n"))

    def test_temporary_files_of_programs_are_removed(self):
        text = """
import os
from rocm import amd_suites
(folder / "sleeper").write_text((folder / "sleeper").read_text().replace("sh\\n", "sh\\n: > $TMPDIR/left\\n"))
os.environ["TMPDIR"] = str(folder / "temporary")
(folder / "temporary").mkdir()
(folder / "bin").mkdir()
(folder / "bin" / "sleeper").symlink_to(folder / "sleeper")
(folder / "libs").mkdir()
(folder / "libs" / "libamdhip64.so.7").touch()
(folder / "libs" / "libhiprtc.so.7").touch()
(folder / "libs" / "ld-linux-x86-64.so.2").symlink_to(folder / "sleeper")
suites.prepare_groups = amd_suites.prepare_groups = lambda *_, **__: [folder / "libs"]
amd_suites.Runner.links = lambda *_: folder / "libs"
one = suites.tests("sleeper"), "7.2.4", "gfx1100"
other = amd_suites.suite("sleeper", "1", "wick", (), "sleeper", [["--gtest_filter=*"]]), "1", "gfx1100"
runner = suites.Runner(folder, folder, {"7.2.4": [folder / "libs"]}), amd_suites.Runner(folder, build=folder)
job = sys.argv[1] == "other"
sys.exit(processes.guarded("tool", lambda: report.run(runner[job], [(one, other)[job]], 1, 60, None)))
"""
        for which in ("one", "other"):
            self.assertEqual(self.end(text, signal.SIGTERM, which), (143, "tool: interrupted\n"))

    def test_a_signal_ends_a_download(self):
        text = """
packages.APT_HELPER = str(folder / "sleeper")
packages.mirrors = lambda: ["http://127.0.0.1:1"]
(folder / "list").write_text("base " + "0" * 64 + " 5 base.deb")
groups = lambda: packages.prepare_groups(["base"], folder / "cache", folder / "list", quiet=True)
sys.exit(processes.guarded("tool", groups))
"""
        self.assertEqual(self.end(text, signal.SIGTERM), (143, "tool: interrupted\n"))


class Command(unittest.TestCase):
    def call(self, *arguments):
        return subprocess.run([sys.executable, str(ROOT / "tools/real_rocm.py"), *arguments], capture_output=True, text=True,
                              check=False)

    def test_what_is_unknown_is_named(self):
        for arguments, text in ((("test", "nonsense"), "there is no suite nonsense"),
                                (("test", "--releases", "5"), "there is no release 5"),
                                (("test", "--chips", "gfx1"), "there is no chip gfx1"),
                                (("test", "--chips", ""), "no chip was chosen"),
                                (("test", "--releases", ","), "no release was chosen"),
                                (("test", "--patience", "inf"), "inf isn't above 0"),
                                (("test", "--patience", "0"), "0 isn't above 0"),
                                (("test", "--patience", "nan"), "nan isn't above 0"),
                                (("test", "--seconds", "-1"), "-1 isn't above 0"),
                                (("test", "--jobs", "x"), "invalid positive value: 'x'"),
                                (("test", "--model", "/none"), "there is no /none"),
                                (("test", "gpu_libraries_test", "--releases", "6.4.3"),
                                 "gpu_libraries_test doesn't run on gfx1100, gfx90a under HIP 6.4.3"),
                                (("run", "--chip", "gfx1100,gfx90a", "--", "true"), "invalid choice: 'gfx1100,gfx90a'"),
                                (("run", "--release", "7.2.4,6.4.3", "--", "true"), "invalid choice: '7.2.4,6.4.3'"),
                                (("run", "--release", "", "--", "true"), "invalid choice: ''"),
                                (("page", "--results", "TYPO"), "No such file or directory: 'TYPO'"),
                                (("--emulator", "/none", "run", "--", "true"), "make emu")):
            done = self.call(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(text, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)

    def emulator(self, folder):
        """A folder with the names of what an emulator has."""
        model = pathlib.Path(folder) / "lib" / "model"
        model.mkdir(parents=True)
        for name in ("libwick_emu_model.so", "libdrm.so.2", "libdrm_amdgpu.so.1"):
            (model / name).touch()
        return folder

    def test_what_is_missing_is_named_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder:
            self.emulator(folder)
            (pathlib.Path(folder) / "bin").mkdir()
            broken = pathlib.Path(folder) / "broken.json"
            broken.write_text("[")
            both = ("--emulator", folder, "--build", folder)
            for arguments, text in ((("--emulator", folder, "--build", "/none", "test", "gpu_test"), "/none/bin is missing"),
                                    (("--emulator", folder, "--build", "/none", "token"), "/none/bin/wick is missing"),
                                    ((*both, "test", "gpu_test", "--record-to", str(broken)), "broken.json isn't JSON"),
                                    ((*both, "test", "gpu_test", "--record-to", folder), "Is a directory")):
                done = self.call(*arguments)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
                self.assertIn(text, done.stderr)

    def test_names_are_listed(self):
        done = self.call("test", "--all", "--list")
        self.assertIn("gpu_test\n", done.stdout)
        self.assertIn("hiprtc for gfx1201\n", done.stdout)

    def test_the_selection(self):
        done = self.call("test", "--list")
        self.assertIn("gpu_test\n", done.stdout)
        self.assertNotIn("hiprtc for", done.stdout)
        both = {name for name, release in ((suite.name, release) for suite, release, _ in
                                           suites.chosen([], packages.RELEASES, list(machine.CHIPS)))
                if release != packages.RELEASES[0]}
        self.assertEqual(both, set(suites.OLDER))
        named = suites.chosen(["hiprtc"], packages.RELEASES, list(machine.CHIPS))
        self.assertEqual(len(named), 2 * len(suites.ARCHITECTURES))

    def test_the_time_of_the_selection(self):
        """Both tools' default selections take half an hour at most, by the recorded times of two jobs."""
        results = ROOT / "bench" / "results"
        recorded = [page.read(results / name, page.RESULT) for name in ("amd-runtime.json", "amd-suites.json")]
        took = page.selection_seconds(*recorded)
        self.assertEqual([job for job, seconds in took if seconds is None], [])  # tools/real_rocm.py test --record
        self.assertLessEqual(sum(seconds for _, seconds in took) / 2, 30 * 60)

    def test_the_selection_has_every_program_and_chip(self):
        chips = list(machine.CHIPS)
        runtime = suites.chosen([], packages.RELEASES[:1], chips)
        libraries = amd_suites.chosen([], amd_suites.CHIPS)
        for work, known, short in ((runtime, suites.all_suites(), suites.SHORT),
                                   (libraries, amd_suites.all_suites(), amd_suites.SHORT)):
            chosen = {suite.name for suite, _, _ in work}
            self.assertEqual({suite.name for suite in known if not suite.name.startswith("hiprtc ")} - chosen, set())
            for name, some in short.items():
                of_suite = {chip for suite in known if suite.name == name for chip in suite.chips}
                self.assertTrue(set(some) < of_suite, name)
        for chip, number in (("gfx1100", 10), ("gfx90a", 10)):
            self.assertGreaterEqual(sum(one == chip for _, _, one in runtime), number, chip)
        for chip, number in (("gfx1100", 25), ("gfx90a", 25), ("gfx942", 4), ("gfx1200", 1)):
            self.assertGreaterEqual(sum(one == chip for _, _, one in libraries), number, chip)

    def test_the_page_is_up_to_date(self):
        done = self.call("page", "--check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Pages(unittest.TestCase):
    def test_rows_are_replaced_and_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "results.json"
            suite = suites.tests("gpu_test")
            outcome = suites.Outcome()
            outcome.passed = 3
            page.record(file, [page.row_of(suite, "7.2.4", "gfx1100", outcome, 5)])
            outcome.fail("A.b: a | b")
            page.record(file, [page.row_of(suite, "7.2.4", "gfx1100", outcome, 5)])
            rows = page.read(file, page.RESULT)
            self.assertEqual(len(rows), 1)
            self.assertEqual(os.listdir(folder), ["results.json"])
            text = page.page(rows)
        self.assertIn("| gpu_test | 3, **1 failed** | not run |", text)
        self.assertIn("| parity_test | not run | not run |", text)
        self.assertIn("| gfx1201 | not run | not run |", text)
        self.assertIn("  - A.b: a \\| b\n", text)

    def test_broken_results_are_named(self):
        good = '[{"suite": "a", "release": "1", "chip": "b", "date": "c", "passed": 1, "failed": 0, "skipped": 0, "seconds": 5, '
        token = '[{"suite": "a", "release": "1", "chip": "b", "date": "c", "cores": 2, "load": [1], "amd": [1.5], "own": '
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "results.json"
            for kinds, text, why in ((page.RESULT, "[{", "isn't JSON"), (page.RESULT, "{}", "isn't a list"),
                                     (page.RESULT, "[5]", "row 1: suite is missing or wrong"),
                                     (page.RESULT, good + '"x": []}]', "row 1: why is missing or wrong"),
                                     (page.RESULT, good + '"why": [5]}]', "row 1: why is missing or wrong"),
                                     (page.KEY, '[{"suite": "a", "release": 7, "chip": "b"}]', "row 1: release is missing"),
                                     (page.TOKEN, token + "[]}]", "row 1: own is missing or wrong")):
                file.write_text(text)
                with self.assertRaisesRegex(errors.RocmError, f"^{file}.* {why}"):
                    page.read(file, kinds)
            file.write_text(good + '"why": []}]')
            self.assertEqual(len(page.read(file, page.RESULT)), 1)
            file.write_text(token + "[2]}]")
            self.assertEqual(len(page.read(file, page.TOKEN)), 1)

    def test_what_hiprtc_compiled(self):
        suite = next(suite for suite in suites.all_suites() if suite.name == "hiprtc for gfx1100")
        for passed, failed, skipped, cell in ((1, 0, 0, "yes"), (0, 0, 1, "skipped"), (1, 0, 1, "skipped"),
                                              (0, 0, 0, "nothing ran"), (1, 1, 0, "**no**")):
            outcome = suites.Outcome()
            outcome.passed, outcome.failed, outcome.skipped = passed, failed, skipped
            text = page.page([page.row_of(suite, "7.2.4", "gfx1100", outcome, 5)])
            self.assertIn(f"| gfx1100 | {cell} | not run |", text)


class TokenTime(unittest.TestCase):
    def test_the_order_and_the_ratio(self):
        asked = []

        class Timer:
            def milliseconds(self, side):
                asked.append(side)
                return {"amd": 120.04, "own": 100.0}[side] * (2 if len(asked) > 4 else 1)

        row = token_time.measure(Timer(), "7.2.4", "gfx90a", 3)
        self.assertEqual(asked, ["amd", "own", "own", "amd", "amd", "own"])
        self.assertEqual((row["amd"], row["own"]), ([120.0, 120.0, 240.1], [100.0, 100.0, 200.0]))
        self.assertEqual(len(row["load"]), 3)
        text = page.page([], [], [row])
        self.assertIn("| 7.2.4 | gfx90a | 120 (120 to 240) | 100 (100 to 200) | 1.20 | 3 |", text)
        text = page.page([], [], [{**row, "amd": [130.0, 100.0, 260.0]}])
        self.assertIn("| **1.30** | 3 |", text)
        self.assertNotIn("The time of a token", page.page([]))

    def test_what_a_program_prints(self):
        with tempfile.TemporaryDirectory() as folder:
            wick = pathlib.Path(folder) / "wick"
            timer = token_time.Timer(machine.Machine([], folder, ["gfx1100"]), wick, pathlib.Path(folder), "m")
            wick.write_text("""#!/bin/sh
test "$WICK_EMU_DEVICES $WICK_EMU_THREADS $WICK_EMU_CHECK" = "gfx1100 1 none" || exit 1
echo 'measuring'; echo '{"rows": [{"test": "tg8", "tps": 4.0}]}'
""")
            wick.chmod(0o755)
            self.assertEqual(timer.milliseconds("own"), 250)
            wick.write_text("#!/bin/sh\necho 'no such device'; exit 3\n")
            with self.assertRaisesRegex(packages.RocmError, "own: it ended with 3: no such device"):
                timer.milliseconds("own")


class Topology(unittest.TestCase):
    def test_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            machine.write_topology(pathlib.Path(folder), [machine.CHIPS["gfx90a"]])
            properties = (pathlib.Path(folder) / "nodes/1/properties").read_text()
            self.assertIn("gfx_target_version 90010\n", properties)
            self.assertEqual((pathlib.Path(folder) / "nodes/1/gpu_id").read_text(), "2\n")

    def test_libraries(self):
        with tempfile.TemporaryDirectory() as folder:
            libraries = pathlib.Path(folder) / "libraries"
            with self.assertRaisesRegex(errors.RocmError, f"there is no libamdhip64.so in {libraries}"):
                machine.Machine([libraries], folder, ["gfx1100"]).__enter__()
            libraries.mkdir()
            (libraries / "libamdhip64.so.7").touch()
            with machine.Machine([os.path.relpath(libraries)], folder, ["gfx1100"]) as one:
                self.assertTrue((one.links() / "libamdhip64.so").exists())


if __name__ == "__main__":
    unittest.main()
