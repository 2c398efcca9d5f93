# SPDX-License-Identifier: Apache-2.0
"""unittest for suites with gantryds of their own: when a test fails, what its gantryds have said is told with it, so that a failure far away
explains itself. What programs and workers say on stderr is the test's stderr already.

    telling.main(STAGE, names)      names: of tests, as the loader names them; all when there are none
"""

import os
import signal
import sys
import traceback
import unittest

from daemon import Daemon, stage_ready

SKIP = 77


def words_of_all():
    """Of every gantryd of this test, or of the class that it is in; those that have ended are told of no more."""
    words = "\n".join(d.last_words() for d in Daemon.made)
    Daemon.made[:] = [d for d in Daemon.made if d.runs()]
    return words


class Result(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self.before = len(self.failures), len(self.errors)

    def stopTest(self, test):
        """Behind what has failed, once it has been cleared away: a gantryd's last words may be said then."""
        words = words_of_all()
        for found, before in zip((self.failures, self.errors), self.before):
            if len(found) > before:
                which, text = found[-1]
                found[-1] = which, text + words + "\n"
        super().stopTest(test)


def ended_from_outside(_signal, frame):
    """A test that takes too long: where it stood, and what its gantryds have said. They are in sessions of their own, and end with it."""
    print("ended from outside, when it was here:\n{}{}".format("".join(traceback.format_stack(frame)), words_of_all()), file=sys.stderr, flush=True)
    for daemon in Daemon.made:
        daemon.kill()
    os._exit(1)


def main(stage, names=(), loader=unittest.defaultTestLoader):
    why = stage_ready(stage)
    if why:
        print(why)
        sys.exit(SKIP)
    signal.signal(signal.SIGTERM, ended_from_outside)
    unittest.main(argv=[sys.argv[0], *names], testLoader=loader, testRunner=unittest.TextTestRunner(verbosity=2, resultclass=Result))
