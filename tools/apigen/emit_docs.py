# SPDX-License-Identifier: Apache-2.0
"""Writes the table of calls for people: every entry point and how it is served."""

SERVED = {
    "local": "in the program",
    "forward": "asked of the driver",
    "info": "asked of the driver",
    "create": "asked of the driver",
    "command": "a pending command",
    "retain": "in the program",
    "release": "in the program; the last one tells the vGPU",
    "absent": "not carried",
}


def emit(api, out):
    out(f"<!-- Written by apigen: do not edit. -->\n# {api.dialect.TITLE} calls and how each is served\n")
    out("| Call | Since | Served | Op | Tracked |\n| --- | --- | --- | --- | --- |")
    for c in api.calls:
        if c.message:
            continue
        how = SERVED[c.served]
        if c.served == "absent":
            how = f"returns {c.error}"
        elif c.local_names:
            how += f"; {len(c.local_names)} of its parameters in the program"
        elif c.check:
            how += ", checked in the program"
        out(f"| `{c.name}` | {c.since or c.extension} | {how} | {c.number if c.travels else '-'} | {' '.join(c.track) or '-'} |")
    for name in api.absent:
        out(f"| `{name}` | - | returns {api.dialect.UNSUPPORTED} | - | - |")
    out("\n## Requests of Gantry's own\n\n| Request | Op | Tracked |\n| --- | --- | --- |")
    for c in api.calls:
        if c.message:
            out(f"| `{c.name}` | {c.number} | {' '.join(c.track) or '-'} |")
