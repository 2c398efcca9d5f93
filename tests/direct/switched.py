#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs, each switched between passthrough and remote while it runs: what they give must be what they give natively.

    switched.py --stage STAGE [--switches N] [--json FILE] [NAME]...

Each program works through what comes by its stdin. It gets a piece, its vGPU is switched while it works on that, and only then the
piece after the next: so there are as many switches as were asked for, however fast it is. The pauses are printed, and judge nothing.
One verdict a program; exit status 0, 1 when any failed, 77 when none could be run.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(os.path.dirname(HERE), "programs")
sys.path.insert(0, PROGRAMS)
import daemon  # noqa: E402
import programs  # noqa: E402
import runner  # noqa: E402

PHASES = ("hold", "stand", "driver", "ends", "tables", "contents", "loaded", "commit")


class Fed(programs.Program):
    """A program and what comes by its stdin, in pieces."""

    timeout = 600

    def command(self, side):
        raise NotImplementedError

    def pieces(self, side, n):
        raise NotImplementedError

    def observe_fed(self, side, out, err):
        raise NotImplementedError


class X264(Fed):
    """As programs.X264: on one PoCL thread, with its kernels compiled."""

    needs = programs.X264.needs
    packages = programs.X264.packages
    warm = programs.X264.warm
    daemon_args = programs.X264.daemon_args
    env = programs.X264.env
    daemon_env = programs.X264.daemon_env
    frames_a_piece = 12
    size = (640, 352)

    def prepare(self, side):
        side.run_plain(["gcc", "-shared", "-fPIC", "-w", "-Wl,--no-as-needed", "-o", os.path.join(side.shared, "libOpenCL.so"),
                        os.path.join(PROGRAMS, "as_gpu.c"), "-l:libOpenCL.so.1"])

    def pieces(self, side, n):
        path = os.path.join(side.shared, "in-{}.y4m".format(n))
        if not os.path.exists(path):
            side.run_plain(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size={}x{}:rate=25".format(*self.size),
                            "-frames:v", str(n * self.frames_a_piece), "-pix_fmt", "yuv420p", path])
        with open(path, "rb") as f:
            pieces = [f.readline()]
            piece = self.frames_a_piece * (len(b"FRAME\n") + self.size[0] * self.size[1] * 3 // 2)
            return [pieces[0] + f.read(piece)] + [f.read(piece) for _ in range(n - 1)]

    def command(self, side):
        return ["env", "LD_LIBRARY_PATH=" + side.shared, "x264", "--opencl", "--threads", "1", "--lookahead-threads", "1", "--no-progress",
                "--demuxer", "y4m", "-o", "out.264", "-"]

    def observe_fed(self, side, out, err):
        if "OpenCL acceleration enabled" not in err:
            raise programs.Wrong("x264 did not use OpenCL:\n" + err)
        stream = side.read_bytes("out.264")
        if len(stream) < 1000:
            raise programs.Wrong("x264 wrote {} bytes".format(len(stream)))
        return hashlib.md5(stream).hexdigest()


class Hashcat(Fed):
    """Words by stdin; the last one is looked for."""

    needs = ("hashcat",)
    packages = "hashcat"
    words = 400000

    def pieces(self, side, n):
        last = "w{}".format(n * self.words - 1)
        with open(os.path.join(side.shared, "hash"), "w", encoding="ascii") as f:
            f.write(hashlib.md5(last.encode()).hexdigest() + "\n")
        return ["".join("w{}\n".format(i) for i in range(p * self.words, (p + 1) * self.words)).encode() for p in range(n)]

    def command(self, side):
        return ["hashcat", "-D", "1,2", "-a", "0", "-m", "0", "--potfile-disable", "--force", "--self-test-disable", "--quiet",
                "--outfile", "out", "--outfile-format", "1,2", os.path.join(side.shared, "hash")]

    def observe_fed(self, side, out, err):
        cracked = side.read("out")
        if not re.match(r"[0-9a-f]{32}:w\d+\n$", cracked):
            raise programs.Wrong("hashcat found {!r}".format(cracked))
        return cracked


class Lines(Fed):
    """A script of ours that does some work for each line, and says at the end what came of it."""

    def __init__(self, script, *args, modules, packages):
        self.words = [programs.PYTHON, os.path.join(PROGRAMS, script), *args]
        self.modules = modules
        self.packages = packages

    def command(self, side):
        return self.words

    def pieces(self, side, n):
        return [b"on\n"] * n

    def observe_fed(self, side, out, err):
        if not re.search(r"\b[0-9a-f]{64}\b", out):
            raise programs.Wrong("no result was printed")
        return out


TABLE = {
    "x264": X264(),
    "hashcat": Hashcat(),
    "pyopencl": Lines("pyopencl_programs.py", "paced", modules=("pyopencl", "numpy"), packages="python3-pyopencl"),
    "openmm": Lines("openmm_argon.py", "paced", modules=("openmm",), packages="python3-simtk libopenmm-plugins"),
}


class Switcher:
    """Switches the vGPU of the program that a gantryd has."""

    def __init__(self, gantry):
        self.gantry = gantry
        self.pauses = []

    def __call__(self, number):
        mode = "passthrough" if number % 2 else "remote"
        if not daemon.wait_until(self.gantry.vgpus, 120):
            raise runner.Failed("it has no vGPU to be switched")
        (vgpu,) = self.gantry.vgpus()
        done = subprocess.run([os.path.join(self.gantry.stage, "bin", "gantry"), "mode", "--json", "--drain-timeout", "60", "--connect",
                               self.gantry.address, vgpu["id"], mode], capture_output=True, text=True, timeout=200, check=False)
        if done.returncode:
            raise runner.Failed("switch {} to {}: {}{}".format(number, mode, done.stdout, done.stderr))
        move = json.loads(done.stdout)["move"]
        (now,) = self.gantry.vgpus()
        if (now["id"], now["mode"]) != (vgpu["id"], mode):
            raise runner.Failed("switch {} to {} ended in {}".format(number, mode, now))
        self.pauses.append({"to": mode, **move})


class Switched(runner.Runner):
    def __init__(self, stage, work, n_switches):
        super().__init__(stage, work, False, passthrough=True)
        self.n_switches = n_switches

    def run(self, side, program, between):
        """The output of it, fed; between(i) is called while it works on piece i, and the one after the next waits for that."""
        pieces = program.pieces(side, self.n_switches + 2)
        with open(os.path.join(side.work, "stdout"), "w+b") as out, open(os.path.join(side.work, "stderr"), "w+b") as err:
            process = subprocess.Popen(program.command(side), cwd=side.work, env={**side.env, **program.env}, stdin=subprocess.PIPE,
                                       stdout=out, stderr=err, start_new_session=True)
            watch = threading.Timer(program.timeout, os.killpg, (process.pid, signal.SIGKILL))
            watch.start()
            may = threading.Semaphore(2)   # pieces that may be written
            over = threading.Event()

            def feed():
                try:
                    for piece in pieces:
                        may.acquire()
                        if over.is_set():
                            break
                        process.stdin.write(piece)
                        process.stdin.flush()
                    process.stdin.close()
                except OSError:
                    pass

            feeder = threading.Thread(target=feed)
            feeder.start()
            try:
                for i in range(self.n_switches):
                    between(i)
                    may.release()
            except BaseException:
                over.set()
                os.killpg(process.pid, signal.SIGKILL)
                raise
            finally:
                for _ in pieces:
                    may.release()
                process.wait()
                feeder.join()
                watch.cancel()
                out.seek(0)
                err.seek(0)
                outputs = [f.read().decode(errors="replace") for f in (out, err)]
            if process.returncode:
                raise runner.Failed("{} exited with {}\n{}".format(side.name, process.returncode, runner.tail(*outputs)))
            return program.observe_fed(side, *outputs)

    def fresh(self, name, part):
        path = self.folder(name, part)
        shutil.rmtree(path)
        return path

    def native(self, name, program, which):
        env = {**daemon.clean_env(), **program.daemon_env, "POCL_CACHE_DIR": self.folder(name, "cache-native"),
               "OCL_ICD_VENDORS": self.native_vendors(name)}
        side = runner.Side("native", os.path.join(self.root, name, which), self.folder(name, "shared"), env, gantry=False)
        return self.run(side, program, lambda i: None)

    def switched(self, name, program):
        """What it gave, and its pauses. Its own driver has compiled before, natively; its worker's has not, but of one that is to be warm."""
        work = os.path.join(self.root, name, "switched")
        with daemon.Daemon(self.stage, work + "-daemon", args=program.daemon_args, env=program.daemon_env,
                           cache=(self.folder if program.warm else self.fresh)(name, "cache-worker"), passthrough=True) as gantry:
            env = {**gantry.program_env(), "POCL_CACHE_DIR": self.folder(name, "cache-native")}
            side = runner.Side("switched", work, self.folder(name, "shared"), env, gantry=True)
            switch = Switcher(gantry)
            try:
                return self.run(side, program, switch), switch.pauses
            except runner.Failed as failure:
                raise runner.Failed("{}\n--- gantryd's log, its end\n{}".format(failure, gantry.log()[-2000:]))


def in_ms(pauses, *keys):
    values = []
    for p in pauses:
        for key in keys:
            p = p.get(key, 0)
        values.append(p / 1e6)
    return "median {:.1f}, {:.1f} to {:.1f}".format(statistics.median(values), min(values), max(values))


def show(name, pauses):
    for mode in ("remote", "passthrough"):
        some = [p for p in pauses if p["to"] == mode]
        if not some:
            continue
        print("  {} to {}, {} times: stood still for {} ms, the first for {:.1f}".format(
            name, mode, len(some), in_ms(some, "downtime_ns"), some[0]["downtime_ns"] / 1e6))
        for phase in PHASES:
            print("    {}: {}".format(phase, in_ms(some, "phases_ns", phase)))
        print("    ahead: {} ms; pages in the stop: {}".format(in_ms(some, "precopy_ns"), sorted(p["pages"]["stop"] for p in some)[-1]))


def verdict(switched, name, program):
    reason = runner.missing(program)
    if reason:
        print("SKIP {}: {}".format(name, reason), flush=True)
        return "SKIP", []
    try:
        with switched.alone_with(name):
            switched.prepare(name, program)
            if program.warm:
                switched.native(name, program, "native")
                switched.switched(name, program)
            native = switched.native(name, program, "native")
            result, pauses = switched.switched(name, program)
        runner.same(native, result, "native", "switched")
    except runner.EXPECTED as failure:
        print("FAIL {}: {}".format(name, failure), flush=True)
        return "FAIL", []
    print("PASS {}: switched {} times".format(name, len(pauses)), flush=True)
    show(name, pauses)
    return "PASS", pauses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", required=True)
    parser.add_argument("--work", help="where inputs, outputs and kernel caches are kept (default: beside the stage)")
    parser.add_argument("--switches", type=int, default=20)
    parser.add_argument("--json", help="a file for every pause with its phases")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLE))
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in TABLE]
    if unknown:
        print("switched: unknown program {}: one of {}".format(unknown[0], ", ".join(TABLE)), file=sys.stderr)
        return 2
    reason = daemon.stage_ready(args.stage)
    if reason:
        print("SKIP: " + reason)
        return runner.SKIP
    switched = Switched(args.stage, args.work or os.path.join(args.stage, "..", "switched"), args.switches)
    results = {name: verdict(switched, name, TABLE[name]) for name in args.names or TABLE}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({name: pauses for name, (_, pauses) in results.items()}, f, indent=1)
    verdicts = [word for word, _ in results.values()]
    if "FAIL" in verdicts:
        return 1
    return 0 if "PASS" in verdicts else runner.SKIP


if __name__ == "__main__":
    sys.exit(main())
