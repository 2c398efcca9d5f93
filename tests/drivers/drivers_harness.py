# SPDX-License-Identifier: Apache-2.0
"""What the suites of played drivers share: a gantryd whose driver is PoCL as current_icd.c shows it,
and programs that talk by lines."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "moves"))
from moves_harness import Daemon, MovesCase, TIMEOUT_S, gantry, rest_of, telling  # noqa: E402,F401
from moves_harness import wait_until  # noqa: E402,F401


class DriversCase(MovesCase):
    """`current` is the path of current_icd.c's library, `stage` the staged tree."""

    current = None

    def played(self, name, words, **options):
        """A gantryd on that driver, which is told `words`."""
        vendors = os.path.join(self.work, name + "-vendors")
        os.mkdir(vendors)
        os.chmod(self.work, 0o755)
        with open(os.path.join(vendors, "current.icd"), "w", encoding="utf-8") as f:
            f.write(self.current + "\n")
        env = {"OCL_ICD_VENDORS": vendors, "CURRENT": words, **options.pop("env", {})}
        return self.daemon(name, env=env, **options)

    def start(self, daemon, *words, **env):
        env = {**daemon.program_env(), "CURRENT": daemon.extra_env.get("CURRENT", ""), **env}
        program = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)

        def end():
            program.kill()
            program.wait()
            program.stdin.close()
            program.stdout.close()
        self.addCleanup(end)
        return program

    def says(self, program, line):
        said = program.stdout.readline().strip()
        if said != line:
            self.fail("it says {!r} and not {!r}\n{}".format(said, line, rest_of(program)))

    @staticmethod
    def tell(program, line):
        program.stdin.write(line + "\n")
        program.stdin.flush()
