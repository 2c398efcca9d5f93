# SPDX-License-Identifier: Apache-2.0
"""The experiments on shares of the device; see docs/fairness.md."""
