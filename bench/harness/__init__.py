# SPDX-License-Identifier: Apache-2.0
"""Sections of the benchmark run; run.py puts them together."""
