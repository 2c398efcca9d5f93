# SPDX-License-Identifier: Apache-2.0
"""What moves and checkpoints take, and the papers' figures of it; see docs/moves.md."""
