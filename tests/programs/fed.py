# SPDX-License-Identifier: Apache-2.0
"""Real programs that work through what comes by their stdin, piece by piece, and something that is done to them meanwhile.

A program gets a piece, between() is called while it works on that, and only then comes the piece after the next: so between() is called
as often as was asked for, however fast the program is.
"""

import hashlib
import os
import re
import signal
import subprocess
import threading

import programs
import runner


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
    """As programs.X264: on one PoCL thread."""

    needs = programs.X264.needs
    packages = programs.X264.packages
    daemon_args = programs.X264.daemon_args
    env = programs.X264.env
    daemon_env = programs.X264.daemon_env
    frames_a_piece = 24
    size = (320, 240)

    def prepare(self, side):
        side.run_plain(["gcc", "-shared", "-fPIC", "-w", "-Wl,--no-as-needed", "-o", os.path.join(side.shared, "libOpenCL.so"),
                        os.path.join(programs.HERE, "as_gpu.c"), "-l:libOpenCL.so.1"])

    def pieces(self, side, n):
        path = os.path.join(side.shared, "in-{}.y4m".format(n * self.frames_a_piece))
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
        self.words = [programs.PYTHON, os.path.join(programs.HERE, script), *args]
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


def run(side, program, times, between):
    """What is compared of its output; between(i) is called while it works on piece i, `times` times."""
    pieces = program.pieces(side, times + 2)
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
            for i in range(times):
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
