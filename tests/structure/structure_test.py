#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks of structure.py on small trees: a good one passes, each kind of violation is found where it is."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import structure    # noqa: E402

TABLE = """\
# Architecture

| Folder | What lives there | May use |
| --- | --- | --- |
| `api/` | descriptions | - |
| `src/base/` | errors | libc |
| `src/wire/` | messages | - |
| `src/shm/` | rings | - |
| `src/link/` | sockets | wire, shm |
| `src/vgpu/` | `core`: table; `opencl`: dispatch | shm, wire |
| `bench/` `tests/` | loads | |

CL headers only in `guest/opencl`, `vgpu/opencl`, `backend/opencl`. More text.
"""
LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"


def header(guard, body=""):
    return "{}#ifndef {}\n#define {}\n{}#endif\n".format(LICENCE, guard, guard, body)


GOOD = {
    "ARCHITECTURE.md": TABLE,
    "src/base/error.h": header("GN_BASE_ERROR_H", "struct gn_error { int code; };\n"),
    "src/wire/cursor.h": header("GN_WIRE_CURSOR_H", '#include "base/error.h"\n'),
    "src/shm/ring.h": header("GN_SHM_RING_H"),
    "src/shm/ring_internal.h": header("GN_SHM_RING_INTERNAL_H"),
    "src/shm/ring.c": LICENCE + '#include "shm/ring.h"\n#include "shm/ring_internal.h"\n#include <stdio.h>\n/* not a cl_mem */\n',
    "src/link/link.c": LICENCE + '#include "wire/cursor.h"\n#include "shm/ring.h"\n#include "base/error.h"\n',
    "src/vgpu/opencl/dispatch.c": LICENCE + '#include <CL/cl.h>\n#include "wire/cursor.h"\n#include "made_by_the_generator.h"\n',
}


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name

    def tearDown(self):
        self.folder.cleanup()

    def write(self, files):
        for path, text in files.items():
            full = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)

    def one(self, problems, *parts):
        self.assertEqual(len(problems), 1, problems)
        for part in parts:
            self.assertIn(part, problems[0])


class Folders(Tree):
    def check(self, **changed):
        self.write({**GOOD, **changed})
        return structure.check_folders(self.root)

    def test_a_good_tree_passes(self):
        self.assertEqual(self.check(), [])

    def test_a_folder_that_may_not_be_used(self):
        self.one(self.check(**{"src/shm/ring.h": header("GN_SHM_RING_H", '#include "wire/cursor.h"\n')}),
                 "src/shm/ring.h:4", "shm may not use wire")

    def test_use_is_not_transitive(self):
        self.one(self.check(**{"src/vgpu/a.c": LICENCE + '#include "link/link.h"\n'}), "src/vgpu/a.c:2", "vgpu may not use link")

    def test_base_uses_nobody(self):
        self.one(self.check(**{"src/base/a.c": LICENCE + ' # include "wire/cursor.h"\n'}), "base may not use wire")

    def test_cl_headers_in_the_wrong_place(self):
        self.one(self.check(**{"src/vgpu/core/a.c": LICENCE + "#include <CL/cl_ext.h>\n"}), "src/vgpu/core/a.c:2", "CL headers only in")

    def test_another_folders_internal_header(self):
        self.one(self.check(**{"src/link/a.c": LICENCE + '#include "shm/ring_internal.h"\n'}), "is shm's own")

    def test_a_way_around(self):
        self.assertTrue(self.check(**{"src/shm/a.c": LICENCE + '#include "../wire/cursor.h"\n'}))

    def test_a_folder_that_nobody_described(self):
        self.one(self.check(**{"src/new/a.c": LICENCE}), "src/new is not in")

    def test_a_header_that_may_be_used_alone(self):
        table = TABLE.replace("| sockets | wire, shm |", "| sockets | wire, shm, `vgpu/info.h` |").replace("| shm, wire |", "| wire |")
        self.assertEqual(self.check(**{"ARCHITECTURE.md": table, "src/link/a.c": LICENCE + '#include "vgpu/info.h"\n'}), [])
        self.one(self.check(**{"ARCHITECTURE.md": table, "src/link/a.c": LICENCE + '#include "vgpu/other.h"\n'}), "link may not use vgpu")
        self.one(self.check(**{"ARCHITECTURE.md": table.replace("vgpu/info.h", "nowhere/info.h"), "src/link/a.c": LICENCE}), "nowhere/info.h")
        self.one(self.check(**{"ARCHITECTURE.md": table.replace("| `core`: table; `opencl`: dispatch | wire |",
                                                                "| `core`: table; `opencl`: dispatch | wire, link |"),
                               "src/link/a.c": LICENCE}), "a circle")

    def test_a_sub_folder_that_nobody_described(self):
        self.one(self.check(**{"src/vgpu/session/a.c": LICENCE}), "src/vgpu/session is not in")

    def test_a_circle(self):
        self.one(self.check(**{"ARCHITECTURE.md": TABLE.replace("| messages | - |", "| messages | link |")}), "a circle")

    def test_an_unknown_word_in_the_table(self):
        self.one(self.check(**{"ARCHITECTURE.md": TABLE.replace("| wire, shm |", "| wire, smh, shm |")}), "smh")

    def test_no_table(self):
        self.assertTrue(self.check(**{"ARCHITECTURE.md": "nothing"}))

    def test_no_document_is_skipped(self):
        self.write({"src/base/a.c": LICENCE})
        with self.assertRaises(structure.NotThere):
            structure.check_folders(self.root)


class Circles(Tree):
    A = LICENCE + '#include "daemon/net/a.h"\nint gn_a(int n)\n{\n    return n;\n}\n'
    B = LICENCE + '#include "daemon/vgpu/b.h"\n#include "daemon/net/a.h"\nint gn_b(int n, int (*f)(int))\n{\n    return f(gn_a(n));\n}\n'
    FILES = {"src/daemon/net/a.c": A, "src/daemon/vgpu/b.c": B, "src/daemon/net/a.h": header("GN_A_H", "int gn_a(int n);\n"),
             "src/daemon/vgpu/b.h": header("GN_B_H", "int gn_b(int n, int (*f)(int));\n")}

    def check(self, **changed):
        self.write({**self.FILES, **changed})
        return structure.check_circles(self.root)

    def test_one_direction_passes(self):
        self.assertEqual(self.check(), [])

    def test_a_circle_of_calls(self):
        back = self.A.replace("return n;", "return n ? gn_b(0, 0) : 0;")
        self.one(self.check(**{"src/daemon/net/a.c": back}), "2 files", "net/a.c -> src/daemon/vgpu/b.c", "vgpu/b.c -> src/daemon/net/a.c")

    def test_a_circle_over_a_third_file_and_a_table(self):
        table = LICENCE + "const struct gn_ops gn_table = {.b = gn_b};\n"
        back = self.A.replace("return n;", "return gn_table.x;")
        self.one(self.check(**{"src/daemon/net/a.c": back, "src/daemon/net/table.c": table}), "3 files")

    def test_names_in_comments_texts_and_declarations_are_no_calls(self):
        back = self.A.replace("return n;", 'return n; /* gn_b() */ puts("gn_b");').replace("int gn_a", "static int gn_c(int);\nint gn_a")
        self.assertEqual(self.check(**{"src/daemon/net/a.c": back}), [])

    def test_a_circle_of_headers(self):
        self.one(self.check(**{"src/daemon/net/a.h": header("GN_A_H", '#include "daemon/vgpu/b.h"\n'),
                               "src/daemon/vgpu/b.h": header("GN_B_H", '#include "daemon/net/a.h"\n')}), "net/a.h -> src/daemon/vgpu/b.h")

    def test_a_circle_in_one_folder_is_its_own_affair(self):
        back = self.A.replace("return n;", "return n ? gn_b(0, 0) : 0;")
        self.assertEqual(self.check(**{"src/daemon/net/a.c": back, "src/daemon/net/b.c": self.B, "src/daemon/vgpu/b.c": LICENCE}), [])

    def test_each_folder_with_sub_folders_is_held(self):
        back = self.A.replace("return n;", "return n ? gn_b(0, 0) : 0;")
        for folder in structure.SUB_FOLDERS:
            moved = {path.replace("daemon", folder): text.replace("daemon", folder) for path, text in self.FILES.items()}
            self.write({**moved, "src/{}/net/a.c".format(folder): back.replace("daemon", folder)})
        problems = structure.check_circles(self.root)
        self.assertEqual([problem.split(":")[0] for problem in problems], ["src/daemon", "src/guest", "src/vgpu"])

    ORDER = {"src/guest/core/c.c": LICENCE + "int gn_c(void)\n{\n    return 1;\n}\n",
             "src/guest/session/s.c": LICENCE + "int gn_s(void)\n{\n    return gn_c();\n}\n",
             "src/guest/attach.c": LICENCE + "int gn_attach(void)\n{\n    return gn_s();\n}\n",
             "src/guest/opencl/o.c": LICENCE + "int gn_o(void)\n{\n    return gn_attach();\n}\n"}

    def check_order(self, **changed):
        self.write({**self.ORDER, **changed})
        return structure.check_circles(self.root)

    def test_later_sub_folders_use_earlier_ones(self):
        self.assertEqual(self.check_order(), [])
        tables = "session/session_ops.h"
        self.assertEqual(self.check_order(**{"src/guest/" + tables: header("GN_S_H", ""),
                                             "src/guest/core/d.c": LICENCE + '#include "guest/{}"\n'.format(tables)}), [])

    def test_a_use_against_the_order(self):
        for path, call, used in (("residency/r.c", "gn_c()", "core/c.c"), ("core/d.c", "gn_s()", "session/s.c"), ("migrate/m.c", "gn_o()", "opencl/o.c"),
                                 ("session/t.c", "gn_attach()", "attach.c")):
            text = LICENCE + "int gn_d(void)\n{\n    return " + call + ";\n}\n"
            self.one(self.check_order(**{"src/guest/" + path: text}), "src/guest/{} uses src/guest/{}, ".format(path, used))
            self.assertEqual(self.check_order(**{"src/guest/" + path: "#include <cmocka.h>\n" + text}), [])
        self.one(self.check_order(**{"src/guest/session/s.h": header("GN_S_H", ""),
                                     "src/guest/core/d.c": LICENCE + '#include "guest/session/s.h"\n'}), "session/s.h")


class Files(Tree):
    def check(self, **changed):
        self.write({**GOOD, **changed})
        return structure.check_files(self.root)

    def test_a_good_tree_passes(self):
        self.assertEqual(self.check(), [])

    def test_no_licence(self):
        self.one(self.check(**{"tests/x/a.c": "int a;\n"}), "tests/x/a.c", "licence")

    def test_too_long(self):
        self.one(self.check(**{"src/link/a.c": LICENCE + "int a;\n" * 900}), "src/link/a.c", "901 lines")
        self.assertEqual(self.check(**{"src/link/a.c": LICENCE + "/* Long because it is a table. */\n" + "int a;\n" * 900}), [])

    def test_a_line_too_wide_in_src_alone(self):
        wide = "a" * 101 + "\n"
        for path, licence in (("src/link/a.c", LICENCE), ("src/link/a_test.py", "# " + LICENCE)):
            self.one(self.check(**{path: licence + wide}), path + ":2: 101 columns")
            os.remove(os.path.join(self.root, path))
        self.assertEqual(self.check(**{"tests/link/a.py": "# " + LICENCE + wide}), [])

    def test_no_guard(self):
        self.one(self.check(**{"src/link/a.h": LICENCE + "int a;\n"}), "guard")

    def test_a_descriptor_that_may_be_a_programs_stdout(self):
        for call in ("socket(AF_UNIX, 0, 0)", "fcntl(1, F_DUPFD_CLOEXEC, 0)", "eventfd(0, 0)", "open(\"a\", 0)"):
            self.one(self.check(**{"src/shm/a.c": LICENCE + "int f(void) { return " + call + "; }\n"}), "src/shm/a.c:2", "descriptor.h")
        self.assertEqual(self.check(**{"src/shm/a.c": LICENCE + "int f(void) { return gn_fd_socket(1, 2) + ops->open(1) + is_open(2); }\n"
                                       "/* open(2) */\nint g(void) { return pipe2(0, 0); } /* in a worker */\n"}), [])

    def test_an_api_where_none_belongs(self):
        self.one(self.check(**{"src/link/a.c": LICENCE + "int f(cl_mem m);\n"}), "cl_mem", "link knows no API")
        self.one(self.check(**{"src/link/a.c": LICENCE + "int f = CL_SUCCESS;\n"}), "link knows no API")
        clean = {"src/link/a.c": LICENCE}
        for path, text, what, folder in (("vgpu/core/a.c", "int f = GN_KIND_MEM;\n", "GN_KIND_MEM", "vgpu/core"),
                                         ("guest/attach.c", "int f = CL_SUCCESS;\n", "CL_S", "guest/attach"),
                                         ("daemon/net/a.c", 'char f[] = "OpenCL";\n', "OpenCL", "daemon"),
                                         ("vgpu/migrate/a.c", '#include "vgpu/opencl/a.h"\n', "opencl", "vgpu/migrate")):
            self.one(self.check(**{**clean, "src/" + path: LICENCE + text}), what, folder + " knows no API")
            clean["src/" + path] = LICENCE
        self.assertEqual(self.check(**{**clean, "src/daemon/a_test.c": LICENCE + 'char f[] = "OpenCL";\n'}), [])

    def test_a_close_on_the_loop(self):
        self.one(self.check(**{"src/daemon/net/attach.c": LICENCE + "void f(int fd)\n{\n    close(fd);\n}\n"}), "attach.c: calls close()")
        self.assertEqual(self.check(**{"src/daemon/net/attach.c": LICENCE + "void f(int *fd)\n{\n    gn_quota_close(q, fd);\n}\n"}), [])


class Headers(Tree):
    def check(self, text):
        self.write({"src/shm/ring.h": header("GN_SHM_RING_H", "struct gn_ring { int n; };\n"), "src/link/link.h": text})
        build = os.path.join(self.root, "build")
        command = "cc -I../src -Iout -DWIDTH=4 -std=gnu17 -o x.o -c ../src/link/link.c"
        self.write({"build/compile_commands.json": json.dumps([{"directory": build, "command": command, "file": "../src/link/link.c"}]),
                    "build/out/made.h": "typedef int made_t;\n"})
        return structure.check_headers(self.root, build)

    def test_a_complete_header_passes_with_its_folders_flags(self):
        body = '#include "shm/ring.h"\n#include "made.h"\nstruct gn_link { struct gn_ring ring; made_t x[WIDTH]; };\n'
        self.assertEqual(self.check(header("GN_LINK_H", body)), [])

    def test_a_header_that_needs_another_first(self):
        self.one(self.check(header("GN_LINK_H", "struct gn_link { struct gn_ring ring; };\n")), "src/link/link.h")

    def test_a_header_without_a_guard(self):
        self.one(self.check(LICENCE + "struct gn_link { int n; };\n"), "src/link/link.h")


class Library(Tree):
    ALL = "".join("__attribute__((visibility(\"default\"))) int {}(void) {{ return 0; }}\n".format(name)
                  for name in sorted(structure.EXPORTS))

    def check(self, source, *flags):
        self.write({"lib.c": source, "stage/lib/libgantry-opencl.so": "not this one"})
        subprocess.run(["cc", "-shared", "-fPIC", "-fvisibility=hidden", "-w", "-o", os.path.join(self.root, "libgantry-opencl.so"),
                        os.path.join(self.root, "lib.c"), *flags], check=True)
        return structure.check_library(self.root)

    def test_a_good_library_passes(self):
        self.assertEqual(self.check(self.ALL + "int hidden;\n", "-Wl,-z,nodelete"), [])

    def test_one_symbol_too_many(self):
        self.one(self.check(self.ALL + "__attribute__((visibility(\"default\"))) int clFinish(void) { return 0; }\n", "-Wl,-z,nodelete"),
                 "exports clFinish")

    def test_one_symbol_missing(self):
        self.one(self.check(self.ALL.replace("clGetPlatformInfo", "hidden_now").replace("\"default\"))) int hidden", "\"hidden\"))) int hidden"),
                            "-Wl,-z,nodelete"), "does not export clGetPlatformInfo")

    def test_a_library_it_should_not_need(self):
        self.one(self.check(self.ALL, "-Wl,-z,nodelete", "-Wl,--no-as-needed", "-l:libgcc_s.so.1"), "needs libgcc_s.so.1")

    def test_a_call_into_the_loader(self):
        self.one(self.check(self.ALL + "int clWaitForEvents(void);\nint f(void) { return clWaitForEvents(); }\n"
                            "__attribute__((used)) static int (*p)(void) = f;\n", "-Wl,-z,nodelete"), "calls clWaitForEvents")

    def test_unloadable(self):
        self.one(self.check(self.ALL), "nodelete")

    def test_not_built_is_skipped(self):
        with self.assertRaises(structure.NotThere):
            structure.check_library(self.root)


if __name__ == "__main__":
    unittest.main()
