#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The generator: descriptions in, text out.

    apigen_test.py                run the tests
    apigen_test.py --refresh      write golden/ anew from tiny.api and toy.api; look at the difference before committing it

`tiny.api` uses every word of the language, in OpenCL's dialect; `toy.api` is of an API that shares no name with OpenCL, whose dialect is
dialect_toy.py. `golden/` holds what must follow from both. `bad.txt` holds descriptions that must be refused, at a
given line, with a given message: one at least for each check, which a test of its own makes sure of. Two mutation tests take away one
check, or one line of output, at a time, and want the tests above to notice.
"""

import ast
import functools
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest

import dialect_toy

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.dirname(HERE)
ROOT = os.path.dirname(os.path.dirname(TOOL))
TINY = os.path.join(HERE, "tiny.api")
TOY = os.path.join(HERE, "toy.api")
GOLDEN = os.path.join(HERE, "golden")
OPENCL = os.path.join(ROOT, "api", "opencl.api")
NUMBERS = os.path.join(ROOT, "api", "numbers.lock")
MODULES = ("dialect_opencl", "dialects", "model", "emit_wire", "emit_guest", "emit_host", "emit_docs", "apigen")


def source(name):
    with open(os.path.join(TOOL, name + ".py"), encoding="utf-8") as f:
        return ast.parse(f.read())


@functools.lru_cache(None)
def compiled(name):
    return compile(source(name), os.path.join(TOOL, name + ".py"), "exec")


def load(trees=None):
    """The generator's modules, fresh, some of them from changed trees; never left in sys.modules."""
    kept = {name: sys.modules.pop(name, None) for name in MODULES}
    loaded = {}
    try:
        for name in MODULES:
            module = types.ModuleType(name)
            sys.modules[name] = loaded[name] = module
            changed = (trees or {}).get(name)
            exec(compile(changed, name, "exec") if changed else compiled(name), module.__dict__)  # pylint: disable=exec-used
    finally:
        for name, module in kept.items():
            sys.modules.pop(name, None)
            if module:
                sys.modules[name] = module
    loaded["dialects"].DIALECTS["toy"] = dialect_toy
    return loaded


def outputs(modules, path):
    """What the description gives: {suffix: text}."""
    api = modules["model"].read(path)
    texts = {}
    for suffix, emit in modules["apigen"].OUTPUTS.items():
        lines = []
        emit(api, lines.append)
        texts[suffix] = "\n".join(lines) + "\n"
    return texts


def made(modules):
    """What the two descriptions give: {file in golden/: text}."""
    return {name + suffix: text for name, path in (("tiny_", TINY), ("toy_", TOY)) for suffix, text in outputs(modules, path).items()}


def golden():
    texts = {}
    for name in os.listdir(GOLDEN):
        with open(os.path.join(GOLDEN, name), encoding="utf-8") as f:
            texts[name] = f.read()
    return texts


class Bad:
    """A description that must be refused. `locked`: what numbers.lock says, when that is what it is refused for."""

    def __init__(self, head, body):
        if not re.match(r"^(numbers\.lock:)?[1-9]\d*: .+$", head):
            raise ValueError("bad.txt: '{}' is not LINE: MESSAGE".format(head))
        self.refusal = head
        self.text, _, self.locked = body.partition("--- numbers.lock\n")


def bad():
    """bad.txt: `=== LINE: MESSAGE`, then the description; `=== numbers.lock:LINE: MESSAGE` when that file is at fault."""
    with open(os.path.join(HERE, "bad.txt"), encoding="utf-8") as f:
        parts = re.split(r"^=== (.*)\n", f.read(), flags=re.M)
    return [Bad(head, body) for head, body in zip(parts[1::2], parts[2::2])]


def refusal(modules, case, seen=None):
    """What the generator says to a bad description, without the path; None when it takes it. seen: gets the check's line of code."""
    with tempfile.TemporaryDirectory() as folder:
        path, lock = os.path.join(folder, "bad.api"), os.path.join(folder, "numbers.lock")
        for name, text in ((path, case.text), (lock, case.locked)):
            with open(name, "w", encoding="utf-8") as f:
                f.write(text)
        error = modules["model"].DescriptionError
        try:
            api = modules["model"].read(path)
            if case.locked:
                modules["apigen"].check_lock(api, path, lock, False)
        except error as e:
            trace = e.__traceback__
            while seen is not None and trace:
                seen.add((os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno))
                trace = trace.tb_next
            return str(e).replace(path + ":", "").replace(lock, "numbers.lock")
    return None


def is_check(node):
    """A statement that refuses: self.fail(...), but for the two that only pass on, or raise DescriptionError in apigen."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        f = node.value.func
        return isinstance(f, ast.Attribute) and f.attr == "fail" and isinstance(f.value, ast.Name) and f.value.id == "self"
    return isinstance(node, ast.Raise) and "DescriptionError" in ast.dump(node)


def checks():
    return [(name, node) for name in ("model", "apigen") for node in ast.walk(source(name)) if is_check(node)
            and not (name == "model" and isinstance(node, ast.Raise))]


def without(name, chosen):
    """The module's tree with each statement that `chosen` picks replaced by pass."""
    class Take(ast.NodeTransformer):
        def generic_visit(self, node):
            super().generic_visit(node)
            return ast.copy_location(ast.Pass(), node) if isinstance(node, ast.stmt) and chosen(node) else node
    return ast.fix_missing_locations(Take().visit(source(name)))


def is_output(node):
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "out")


class Golden(unittest.TestCase):
    maxDiff = None

    def test_outputs(self):
        texts = made(load())
        self.assertEqual(sorted(os.listdir(GOLDEN)), sorted(texts))
        for name, text in golden().items():
            self.assertEqual(text, texts[name], "golden/{} is not what its description gives: see --refresh".format(name))

    def test_only_its_dialect_names_opencl(self):
        """Neither the tool's own modules nor what a description of another API gives."""
        names = re.compile(r"\bCL_|\bcl_|\bcl[A-Z]|[Oo]pen[Cc][Ll]|\b[Ii][Cc][Dd]\b")
        for name, text in golden().items():
            if name.startswith("toy_"):
                self.assertIsNone(names.search(text), name)
        for name in ("model", "emit_wire", "emit_guest", "emit_host", "emit_docs", "apigen"):
            with open(os.path.join(TOOL, name + ".py"), encoding="utf-8") as f:
                self.assertIsNone(names.search(f.read()), name)

    def test_tiny_uses_the_whole_language(self):
        """Each way to be served, to travel and to be tracked, and each word."""
        modules = load()
        api = modules["model"].read(TINY)
        self.assertEqual({c.served for c in api.calls}, set(modules["model"].SERVED))
        with open(os.path.join(TOOL, "model.py"), encoding="utf-8") as f:
            modes = re.search(r"mode: str +# (.*)", f.read()).group(1).split()
        self.assertEqual({p.mode for c in api.calls for p in c.params}, set(modes))
        self.assertEqual({c.track[0] for c in api.calls if c.track}, {"parent", "changes", "adds", "writes", "creates"})
        for word in ("slow", "quiet", "stub", "check", "ordered", "fence", "many", "host", "made", "extension"):
            self.assertTrue(any(getattr(c, word) for c in api.calls), word)
        for word in ("optional", "always", "valid", "in_bytes"):
            self.assertTrue(any(getattr(p, word) for c in api.calls for p in c.params), word)

    def test_wire_layout_compiles(self):
        """The asserts in the golden structs hold for a C compiler, not only for the generator."""
        subprocess.run(["cc", "-std=gnu17", "-fsyntax-only", "-Wpadded", "-Werror", "-x", "c", "-I", os.path.join(ROOT, "src"),
                        os.path.join(GOLDEN, "tiny_wire.h"), "-Wno-pragma-once-outside-header"], check=True)

    def test_same_input_same_bytes(self):
        """Two processes whose hashes and directories differ."""
        for description in (TINY, OPENCL):
            results = []
            for seed in ("1", "2"):
                with tempfile.TemporaryDirectory() as folder:
                    subprocess.run([sys.executable, os.path.join(TOOL, "apigen.py"), description, "--out", folder], check=True, cwd=folder,
                                   env={**os.environ, "PYTHONHASHSEED": seed})
                    texts = {}
                    for name in os.listdir(folder):
                        with open(os.path.join(folder, name), "rb") as f:
                            texts[name] = f.read()
                    results.append(texts)
            self.assertEqual(len(results[0]), 6)
            self.assertEqual(results[0], results[1])

    def test_each_line_of_output_counts(self):
        """Takes one line of the emitters away at a time: golden/ must differ, or a line is written that nothing compares."""
        wanted = golden()
        for name in ("dialect_opencl", "emit_wire", "emit_guest", "emit_host", "emit_docs"):
            lines = [node.lineno for node in ast.walk(source(name)) if is_output(node)]
            self.assertGreater(len(lines), 5, name)
            for line in lines:
                tree = without(name, lambda node, line=line: is_output(node) and node.lineno == line)
                self.assertNotEqual(made(load({name: tree})), wanted, "{}.py:{} can go unseen".format(name, line))


class Refusals(unittest.TestCase):
    def test_bad(self):
        modules = load()
        for case in bad():
            with self.subTest(case.refusal):
                self.assertEqual(refusal(modules, case), case.refusal)

    def test_every_check_has_a_case(self):
        modules = load()
        seen = set()
        for case in bad():
            refusal(modules, case, seen)
        for name, node in checks():
            lines = range(node.lineno, node.end_lineno + 1)
            self.assertTrue(any((name + ".py", line) in seen for line in lines), "{}.py:{} has no case in bad.txt".format(name, node.lineno))

    def test_every_check_counts(self):
        """Without a check, some case of bad.txt is taken, or refused with other words."""
        cases = bad()
        right = [case.refusal for case in cases]
        for name, node in checks():
            modules = load({name: without(name, lambda n, line=node.lineno: is_check(n) and n.lineno == line)})
            said = []
            for case in cases:
                try:
                    said.append(refusal(modules, case))
                except Exception as e:  # pylint: disable=broad-except    a check's absence may lead anywhere
                    said.append(repr(e))
            self.assertNotEqual(said, right, "{}.py:{} is not missed".format(name, node.lineno))


class OpenCL(unittest.TestCase):
    """The description against the Khronos header and against what is written about it."""

    @staticmethod
    def table():
        """Members of the ICD dispatch table, as the preprocessor leaves them."""
        text = subprocess.run(["cc", "-E", "-P", "-x", "c", "-", "-DCL_TARGET_OPENCL_VERSION=300"], input=b"#include <CL/cl_icd.h>\n",
                              stdout=subprocess.PIPE, check=True).stdout.decode()
        body = re.search(r"typedef struct _cl_icd_dispatch \{(.*?)\} cl_icd_dispatch;", text, re.S).group(1)
        return re.findall(r"\b(\w+);", body)

    def test_every_entry_of_the_table(self):
        table = self.table()
        self.assertLessEqual({"clGetPlatformIDs", "clGetDeviceIDsFromD3D10KHR", "clSetContextDestructorCallback"}, set(table))
        api = load()["model"].read(OPENCL)
        described = [c.name for c in api.calls if not c.message and not c.extension] + api.absent
        self.assertEqual(len(described), len(set(described)), "something is described twice")
        self.assertEqual(set(table) - set(described), set(), "in CL/cl_icd.h, but not described")
        self.assertEqual(set(described) - set(table), set(), "described, but not in CL/cl_icd.h")

    def test_every_entry_of_an_extension(self):
        """An extension is carried whole: all entry points that its header declares are described."""
        api = load()["model"].read(OPENCL)
        with open("/usr/include/CL/cl_ext.h", encoding="utf-8") as f:
            header = f.read()
        for extension in {c.extension for c in api.calls if c.extension}:
            section = re.search(r"#define {} 1\n(.*?)#endif /\* CL_NO_PROTOTYPES \*/".format(extension), header, re.S).group(1)
            declared = set(re.findall(r"^(cl\w+)\(", section, re.M))
            self.assertEqual({c.name for c in api.calls if c.extension == extension}, declared)

    def test_every_call_is_listed(self):
        api = load()["model"].read(OPENCL)
        text = outputs(load(), OPENCL)["calls.md"]
        listed = re.findall(r"^\| `(\w+)` \|", text, re.M)
        self.assertEqual(sorted(listed), sorted([c.name for c in api.calls] + api.absent))

    def test_numbers(self):
        """Every number is recorded, and `--lock` would change nothing."""
        with tempfile.TemporaryDirectory() as folder:
            lock = os.path.join(folder, "numbers.lock")
            with open(NUMBERS, encoding="utf-8") as f:
                before = f.read()
            with open(lock, "w", encoding="utf-8") as f:
                f.write(before)
            done = subprocess.run([sys.executable, os.path.join(TOOL, "apigen.py"), OPENCL, "--numbers", lock], stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            subprocess.run([sys.executable, os.path.join(TOOL, "apigen.py"), OPENCL, "--numbers", lock, "--lock"], check=True)
            with open(lock, encoding="utf-8") as f:
                self.assertEqual(sorted(f.read().split("\n")), sorted(before.split("\n")))

    def test_a_new_number_is_recorded(self):
        with tempfile.TemporaryDirectory() as folder:
            lock = os.path.join(folder, "numbers.lock")
            with open(lock, "w", encoding="utf-8") as f:
                f.write("clGoneLongAgo 300\n")
            subprocess.run([sys.executable, os.path.join(TOOL, "apigen.py"), TINY, "--numbers", lock, "--lock"], check=True)
            with open(lock, encoding="utf-8") as f:
                lines = f.read().split("\n")
            self.assertIn("Finish 34", lines)
            self.assertIn("clGoneLongAgo 300", lines, "a number that was given once is never given again")

    def test_refusal_reaches_the_shell(self):
        case = bad()[0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bad.api")
            with open(path, "w", encoding="utf-8") as f:
                f.write(case.text)
            done = subprocess.run([sys.executable, os.path.join(TOOL, "apigen.py"), path, "--out", folder], stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr.decode()), (1, "{}:{}\n".format(path, case.refusal)))
            self.assertEqual(os.listdir(folder), ["bad.api"])


def refresh():
    os.makedirs(GOLDEN, exist_ok=True)
    for name, text in made(load()).items():
        with open(os.path.join(GOLDEN, name), "w", encoding="utf-8") as f:
            f.write(text)
    print("golden/ is what tiny.api and toy.api give now: look at `git diff` before you commit it")


if __name__ == "__main__":
    if sys.argv[1:] == ["--refresh"]:
        refresh()
    else:
        unittest.main()
