# SPDX-License-Identifier: Apache-2.0
"""DymGPU's figures in virtual time, and residency periods; see docs/memory.md."""
