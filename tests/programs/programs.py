# SPDX-License-Identifier: Apache-2.0
"""The real programs that must give the same results on Gantry as on the vendor's driver. runner.py runs them.

Each entry says what the program needs, how it is run (a list of commands, so that a second run can meet what a first one cached),
what of its output is compared bit for bit, and which property of the output proves that it meant something.
"""

import hashlib
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"     # the interpreter that Debian's modules are installed for


class Wrong(Exception):
    """An output that no correct driver gives."""


class Program:
    needs = ()              # commands that must be installed
    modules = ()            # Python modules, for PYTHON
    files = ()              # files, e.g. headers
    packages = ""           # what to install when something is missing
    timeout = 240           # seconds for one side
    env = {}                # for the program, on both sides
    warm = False            # run once before, so that what counts builds no kernels
    pinned_mib = 0          # device memory that each run pins beside its objects
    daemon_args = ()
    daemon_env = {}         # for gantryd; the native side has it too, since there the driver is in the program

    def prepare(self, side):
        """Makes inputs in side.shared, once for both sides."""

    def commands(self, side):
        """Argument lists, run one after the other in side.work."""
        raise NotImplementedError

    def observe(self, side, outputs):
        """What is compared, as text, from [(stdout, stderr), ...]; raises Wrong."""
        raise NotImplementedError


def numbers_masked(text):
    return re.sub(r"-?\d+(\.\d+)?", "N", text)


class Clinfo(Program):
    """Every query there is. What may differ by contract is named here line by line; all else must be equal."""

    needs = ("clinfo",)
    packages = "clinfo"
    # An extension that adds entry points which Gantry does not carry.
    not_carried = {"cl_pocl_content_size"}

    def commands(self, side):
        return [["clinfo"], ["clinfo", "--raw"]]

    def observe(self, side, outputs):
        human, raw = outputs[0][0], outputs[1][0]
        if "Number of devices" not in human or "CL_DEVICE_NAME" not in raw:
            raise Wrong("clinfo shows no device")
        if side.gantry:
            for heading, wanted in (("Platform Extensions function suffix", "GANTRY"), ("Run native kernels", "No")):
                if not re.search(r"^ *{} +{}$".format(heading, wanted), human, re.M):
                    raise Wrong("clinfo does not show {}: {}".format(heading, wanted))
        return self.normal(human) + "\n" + self.normal(raw)

    def normal(self, text):
        """The text without what may differ: the suffix, native kernels, extensions not carried, the version of cl_khr_icd, spaces."""
        lines = []
        for line in text.splitlines():
            for name in self.not_carried:
                line = re.sub(r"\b" + name + r"\b(:0x[0-9a-f]+| +0x[0-9a-f]+ \([0-9.]+\))?", "", line)
            line = re.sub(r"^\[(POCL|GANTRY)/", "[SUFFIX/", line)
            line = re.sub(r"\[(POCL|GANTRY)\]$", "[SUFFIX]", line)
            line = re.sub(r"(function suffix|CL_PLATFORM_ICD_SUFFIX_KHR)( +)(POCL|GANTRY)$", r"\1 SUFFIX", line)
            line = re.sub(r"(cl_khr_icd)(:| +)0x[0-9a-f]+( \([0-9.]+\))?", r"\1 VERSION", line)
            line = re.sub(r"(Run native kernels).*", r"\1", line)
            line = re.sub(r"(CL_DEVICE_EXECUTION_CAPABILITIES.*?)( \| CL_EXEC_NATIVE_KERNEL)?$", r"\1", line)
            line = " ".join(line.split())
            if line:
                lines.append(line)
        return "\n".join(lines)


class Clpeak(Program):
    """Its figures are times; the same lines must come, each with a figure above zero. It divides by a time in whole
    microseconds, so that an unmap which takes less has the bandwidth "inf"."""

    needs = ("clpeak",)
    packages = "clpeak"

    def commands(self, side):
        return [["clpeak", "--kernel-latency"], ["clpeak", "--transfer-bandwidth"]]

    def observe(self, side, outputs):
        text = "".join(stdout for stdout, _ in outputs)
        figures = re.findall(r"^\s+(.*?)\s*: ([\d.]+|inf)\s*(us)?$", text, re.M)
        if not any("Kernel launch latency" in line for line in text.splitlines()) or len(figures) < 6:
            raise Wrong("clpeak measured nothing:\n" + text)
        for name, figure, _ in figures:
            if float(figure) <= 0:
                raise Wrong("clpeak measured {} for {}".format(figure, name))
        return numbers_masked(re.sub(r": inf$", ": 0", text, flags=re.M))


class Hashcat(Program):
    """Cracks one MD5; the second run loads the kernels that the first one stored as binaries."""

    needs = ("hashcat",)
    packages = "hashcat"
    timeout = 600
    plain = "gant"

    def prepare(self, side):
        with open(os.path.join(side.shared, "hash"), "w", encoding="ascii") as f:
            f.write(hashlib.md5(self.plain.encode()).hexdigest() + "\n")

    def commands(self, side):
        def crack(out):
            return ["hashcat", "-D", "1,2", "-a", "3", "-m", "0", "--potfile-disable", "--force", "--self-test-disable", "--quiet",
                    "--outfile", out, "--outfile-format", "1,2", os.path.join(side.shared, "hash"), "?l?l?l?l"]
        return [crack("first"), crack("second")]

    def observe(self, side, outputs):
        cracked = [side.read(name) for name in ("first", "second")]
        if any(not text.strip().endswith(":" + self.plain) for text in cracked):
            raise Wrong("hashcat found {!r}".format(cracked))
        return "\n".join(cracked)


class FfmpegFilter(Program):
    """One of ffmpeg's OpenCL filters; the MD5 of every frame."""

    needs = ("ffmpeg",)
    packages = "ffmpeg"
    frames = 6

    def __init__(self, name, options=""):
        self.filter = name + "_opencl" + ("=" + options if options else "")

    def prepare(self, side):
        source = os.path.join(side.shared, "in.y4m")
        if not os.path.exists(source):
            side.run_plain(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25",
                            "-frames:v", str(self.frames), "-pix_fmt", "yuv420p", source])

    def commands(self, side):
        source = os.path.join(side.shared, "in.y4m")
        return [["ffmpeg", "-nostdin", "-v", "error", "-init_hw_device", "opencl=ocl:0.0", "-filter_hw_device", "ocl", "-i", source,
                 "-vf", "format=yuv420p,hwupload,{},hwdownload,format=yuv420p".format(self.filter), "-f", "framemd5", "-"],
                ["ffmpeg", "-nostdin", "-v", "error", "-i", source, "-f", "framemd5", "-"]]

    def observe(self, side, outputs):
        filtered, unfiltered = outputs[0][0], outputs[1][0]
        hashes = [line.split(",")[-1].strip() for line in filtered.splitlines() if not line.startswith("#")]
        before = [line.split(",")[-1].strip() for line in unfiltered.splitlines() if not line.startswith("#")]
        if len(hashes) != self.frames:
            raise Wrong("{} frames instead of {}".format(len(hashes), self.frames))
        if set(hashes) & set(before):
            raise Wrong("the filter changed nothing")
        return filtered


class X264(Program):
    """Asks for a GPU: Gantry shows the device as one, and natively a loader of ours does. On one PoCL thread, since with more it gives another
    stream each time, natively too; and with zeros in all that it reads without having written it, by the same loader (as_gpu.c says what)
    and by the C library."""

    needs = ("x264", "ffmpeg", "gcc")
    packages = "x264 ffmpeg gcc ocl-icd-opencl-dev"
    timeout = 420
    warm = True
    daemon_args = ("--device", "pthread,present-as=gpu")
    env = {"MALLOC_PERTURB_": "255"}   # what malloc gives is filled with its complement
    daemon_env = {"POCL_MAX_PTHREAD_COUNT": "1", **env}
    frames = 30

    def prepare(self, side):
        side.run_plain(["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25",
                        "-frames:v", str(self.frames), "-pix_fmt", "yuv420p", os.path.join(side.shared, "x264.y4m")])
        side.run_plain(["gcc", "-shared", "-fPIC", "-w", "-Wl,--no-as-needed", "-o", os.path.join(side.shared, "libOpenCL.so"),
                        os.path.join(HERE, "as_gpu.c"), "-l:libOpenCL.so.1"])

    def commands(self, side):
        encode = ["env", "LD_LIBRARY_PATH=" + side.shared, "x264", "--opencl", "--threads", "1", "--lookahead-threads", "1", "--no-progress",
                  "-o", "out.264", os.path.join(side.shared, "x264.y4m")]
        return [encode, ["ffmpeg", "-nostdin", "-v", "error", "-i", "out.264", "-f", "framemd5", "-"]]

    def observe(self, side, outputs):
        if not re.search(r"OpenCL acceleration enabled", outputs[0][1]):
            raise Wrong("x264 did not use OpenCL:\n" + outputs[0][1])
        decoded = outputs[1][0]
        if sum(not line.startswith("#") for line in decoded.splitlines()) != self.frames:
            raise Wrong("the stream does not decode to {} frames".format(self.frames))
        return hashlib.md5(side.read_bytes("out.264")).hexdigest() + "\n" + decoded


class Script(Program):
    """A Python program of ours that checks its own results and prints hashes of all of them."""

    def __init__(self, script, *args, modules, packages, env=None, timeout=240):
        self.script = script
        self.args = args
        self.modules = modules
        self.packages = packages
        self.env = env or {}
        self.timeout = timeout

    def commands(self, side):
        return [[PYTHON, os.path.join(HERE, self.script), *self.args]]

    def observe(self, side, outputs):
        if not re.search(r"\b[0-9a-f]{64}\b", outputs[0][0]):
            raise Wrong("no result was printed")
        return outputs[0][0]


class Clblast(Program):
    """CLBlast's own tests: each case against a reference on the processor. The seed is fixed in the program."""

    packages = "clblast-tests"

    def __init__(self, routine):
        self.needs = ("clblast_test_" + routine,)

    def commands(self, side):
        return [[self.needs[0], "-platform", "0", "-device", "0"]]

    def observe(self, side, outputs):
        text = outputs[0][0]
        passed = [int(n) for n in re.findall(r"(\d+) test\(s\) passed", text)]
        failed = [int(n) for n in re.findall(r"(\d+) test\(s\) failed", text)]
        if sum(passed) == 0 or sum(failed) != 0:
            raise Wrong("{} passed, {} failed".format(sum(passed), sum(failed)))
        return text


class Viennacl(Program):
    needs = ("g++",)
    files = ("/usr/include/viennacl/vector.hpp", "/usr/include/CL/cl.h")
    packages = "g++ libviennacl-dev ocl-icd-opencl-dev"

    def prepare(self, side):
        side.run_plain(["g++", "-O1", "-w", "-DCL_TARGET_OPENCL_VERSION=120", "-o", os.path.join(side.shared, "viennacl_solver"),
                        os.path.join(HERE, "viennacl_solver.cpp"), "-lOpenCL"])

    def commands(self, side):
        return [[os.path.join(side.shared, "viennacl_solver")]]

    def observe(self, side, outputs):
        if "product " not in outputs[0][0]:
            raise Wrong("the solver did not get to its end")
        return outputs[0][0]


def table():
    pyopencl = {name: Script("pyopencl_programs.py", name, modules=("pyopencl", "numpy"), packages="python3-pyopencl")
                for name in ("arrays", "reduction", "scan", "radixsort", "svm", "images", "events")}
    programs = {
        "clinfo": Clinfo(),
        "clpeak": Clpeak(),
        "ffmpeg-avgblur": FfmpegFilter("avgblur", "sizeX=3:sizeY=2"),
        "ffmpeg-boxblur": FfmpegFilter("boxblur", "luma_radius=4:luma_power=2"),
        "ffmpeg-unsharp": FfmpegFilter("unsharp"),
        "ffmpeg-sobel": FfmpegFilter("sobel"),
        "ffmpeg-transpose": FfmpegFilter("transpose", "dir=clock"),
        "ffmpeg-nlmeans": FfmpegFilter("nlmeans", "s=5:p=5:r=7"),
        "x264": X264(),
        "opencv": Script("opencv_umat.py", modules=("cv2", "numpy"), packages="python3-opencv",
                         env={"OPENCV_OPENCL_DEVICE": "::0"}),
    }
    programs.update({"pyopencl-" + name: program for name, program in pyopencl.items()})
    # Their sources name printf, whose buffer has 16 MiB on PoCL.
    for name in ("opencv", "pyopencl-scan"):
        programs[name].pinned_mib = 16
    programs.update({
        "clblast-axpy": Clblast("xaxpy"),
        "clblast-dot": Clblast("xdot"),
        "clblast-scal": Clblast("xscal"),
        "clblast-amax": Clblast("xamax"),
        "clblast-gemv": Clblast("xgemv"),
        "viennacl": Viennacl(),
        "openmm": Script("openmm_argon.py", modules=("openmm",), packages="python3-simtk libopenmm-plugins"),
        "hashcat": Hashcat(),
    })
    return programs
