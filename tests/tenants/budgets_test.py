# SPDX-License-Identifier: Apache-2.0
"""Budgets of devices, which bound the leases of all tenants together, and reserves in them:
refusals, what frees, migrations between devices.

    budgets_test.py BUILD [unittest arguments]
"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import tenants_test  # noqa: E402
from tenants_test import FAILED, MIB, TenantTest, wait_until  # noqa: E402


class ConfiguredTest(TenantTest):
    """gantryd has `config`."""
    config = ""

    @classmethod
    def daemon_args(cls):
        path = os.path.join(cls.folder, "gantry.conf")
        with open(path, "w", encoding="ascii") as f:
            f.write(cls.config)
        return ["--config", path]


class BudgetTest(ConfiguredTest):
    """One device with a budget."""
    config = "[device pthread]\nmemory = 64M\n"

    def setUp(self):
        super().setUp()
        self.assertTrue(wait_until(lambda: not self.device()["leased_bytes"], 60))

    def device(self):
        return self.ctl("devices")["devices"][0]


class Budget(BudgetTest):
    """Tenants without limits share it."""

    def test_programs_and_operators_see_the_budget(self):
        p = self.program("default")
        self.assertEqual(p.do("info"), "info {} {}".format(64 * MIB, 64 * MIB))
        self.assertEqual((self.device()["memory_bytes"], self.device()["max_allocation_bytes"],
                          self.device()["leased_bytes"]), (64 * MIB, 64 * MIB, 0))
        p.make("buffer", 40 * MIB)
        self.assertEqual(self.device()["leased_bytes"], self.vgpu(p)["leased_bytes"])

    def test_the_second_is_refused_until_the_first_has_freed(self):
        self.tenant()
        p, q = self.program("default"), self.program()
        held = p.make("buffer", 48 * MIB)
        self.assertEqual(q.do("buffer", 20 * MIB), FAILED)
        q.make("buffer", 16 * MIB)  # to the byte: slack of the other tenant's program is recalled
        self.assertEqual(self.device()["leased_bytes"], 64 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)
        self.assertEqual(q.do("buffer", 1), FAILED)
        log = self.gantry.log()
        self.assertIn("64 MiB of 64 are leased and 0 reserved for other tenants; "
                      "end or move another program there, or raise memory", log)
        self.assertEqual(p.do("touch", held), "same")
        self.assertEqual(p.do("free", held), "freed")
        q.make("buffer", 48 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)

    def test_a_killed_worker_frees(self):
        self.tenant()
        p, q = self.program("default"), self.program()
        p.make("buffer", 64 * MIB)
        self.assertEqual(q.do("buffer", 1), FAILED)
        self.kill_worker_of(p)
        self.assertTrue(wait_until(lambda: self.device()["leased_bytes"] == 0, 60))
        q.make("buffer", 64 * MIB)


class Reserve(BudgetTest):
    """Reserves in one device's budget."""

    def test_an_allocation_that_needs_it_is_refused(self):
        self.tenant("--reserve", "24M")
        q = self.program("default")
        held = q.make("buffer", 30 * MIB)
        self.assertEqual(q.do("buffer", 20 * MIB), FAILED)
        self.assertIn("24 reserved for other tenants", self.gantry.log())
        q.make("buffer", 10 * MIB)
        self.assertEqual(q.do("buffer", 1), FAILED)
        p = self.program()
        p.make("buffer", 24 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)
        self.assertEqual(q.do("free", held), "freed")
        p.make("buffer", 30 * MIB)  # beyond its reserve, as any tenant
        self.assertEqual(self.device()["leased_bytes"], 64 * MIB)

    def test_a_live_change(self):
        self.tenant()
        q = self.program("default")
        held = q.make("buffer", 50 * MIB)
        self.ctl("tenant", "set", self.name, "--reserve", "24M")
        p = self.program()
        self.assertEqual(p.do("buffer", 20 * MIB), FAILED)  # what others use stays theirs
        self.assertEqual(q.do("buffer", 1), FAILED)
        self.assertEqual(q.do("free", held), "freed")  # and goes back at once
        self.assertTrue(wait_until(lambda: self.vgpu(q)["leased_bytes"] <= 40 * MIB, 60))
        q.make("buffer", 40 * MIB)
        self.assertEqual(q.do("buffer", 1), FAILED)
        self.ctl("tenant", "set", self.name, "--reserve", "none")
        q.make("buffer", 24 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)

    def test_more_than_the_budget(self):
        self.tenant("--reserve", "60M")
        said = self.ctl("tenant", "set", "default", "--reserve", "5M", status=1)
        self.assertIn("together exceed the memory of the device", said["error"]["why"])
        self.assertEqual(self.seen()["reserve_bytes"], 60 * MIB)
        self.assertNotIn("reserve_bytes", self.seen("default"))


class Budgets(ConfiguredTest):
    """A device with a budget, and a smaller one."""
    extra_env = {"POCL_DEVICES": "pthread basic"}
    config = "[device pthread]\nmemory = 64M\n[device basic]\nmemory = 32M\n"

    def leased(self):
        """Of pthread, and of basic."""
        devices = sorted(self.ctl("devices")["devices"], key=lambda d: "basic" in d["name"])
        return [d["leased_bytes"] for d in devices]

    def on_first(self):
        """A program that has the first device, of a tenant that may use both."""
        self.tenant("--device", "pthread")
        p = self.program()
        p.do("info")
        self.ctl("tenant", "set", self.name, "--device", "any")
        return p

    def test_a_migration_takes_the_bytes_along(self):
        p = self.on_first()
        held = p.make("buffer", 20 * MIB)
        self.assertEqual(self.leased()[1], 0)
        self.ctl("migrate", self.vgpu(p)["id"], "local", "--device", "basic")
        self.assertTrue(wait_until(lambda: self.leased()[0] == 0, 60))
        self.assertEqual(self.leased()[1], self.vgpu(p)["leased_bytes"])
        self.assertEqual(p.do("touch", held), "same")
        self.assertEqual(p.do("buffer", 13 * MIB), FAILED)
        self.assertEqual(p.do("free", held), "freed")
        p.make("buffer", 32 * MIB)
        self.assertEqual(self.leased(), [0, 32 * MIB])

    def test_a_full_destination_leaves_the_program_where_it_is(self):
        p = self.on_first()
        held = p.make("buffer", 40 * MIB)
        before = self.leased()
        said = self.ctl("migrate", self.vgpu(p)["id"], "local", "--device", "basic", status=1)
        self.assertIn("8 MiB more than the device has left", said["error"]["why"])
        self.assertEqual(self.leased(), before)
        self.assertEqual(p.do("touch", held), "same")
        p.make("buffer", 24 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)

    def test_several_devices_have_the_sum(self):
        p = self.program("default")
        p.make("buffer", 60 * MIB)
        p.make("buffer", 36 * MIB)
        self.assertEqual(p.do("buffer", 1), FAILED)
        self.assertEqual(self.leased(), [64 * MIB, 32 * MIB])
        self.assertEqual(p.do("freeall"), "freed")


if __name__ == "__main__":
    if not os.path.exists("/etc/OpenCL/vendors/pocl.icd"):
        sys.exit(77)
    tenants_test.BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
