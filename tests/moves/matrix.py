# SPDX-License-Identifier: Apache-2.0
"""The tables of the fault matrix: which party is killed at which fault point of a migration, by
which route, with which program, and the outcome. matrix_cases.py carries a cell out, and
matrix_test.py runs the cells of a route; matrix_points_test.py compares the points with src.

A cell's name is ROUTE/PARTY/POINT/PROGRAM.
"""

import dataclasses

PROGRAMS = {
    "moved": "one step for each kind of object and command; it waits for a line at each step",
    "busy": "writes its memory in every way; its result depends on its number of steps alone",
}

PARTIES = {
    "source": "the worker that the vGPU leaves; gantryd's workers inherit the point from gantryd",
    "destination": "the worker that the vGPU goes to; it inherits the point from its gantryd",
    "source-gantryd": "the gantryd that the vGPU leaves, or that saves it into a file",
    "destination-gantryd": "the gantryd that the vGPU goes to, or that restores it",
    "gantry": "the command that asks for the migration",
    "program": "the program of the vGPU",
}

# The outcomes. Each is a function of matrix_cases.py that checks it.
STAYS = "stays"
STAYS_WITH_FILE = "stays_with_file"
STAYS_AND_MOVES_LATER = "stays_and_moves_later"
MOVES = "moves"
MOVES_OR_LOST = "moves_or_lost"
LOST = "lost"
LOST_WITH_FILE = "lost_with_file"
LOST_AFTER_THE_MOVE = "lost_after_the_move"
WAITS_IN_FILE = "waits_in_file"
ENDS = "ends"


@dataclasses.dataclass(frozen=True)
class Route:
    """A way for a vGPU to migrate.

    to: "local", another worker of the same gantryd; "gantryd", another gantryd; "file", a file, and
        with `stop` out of it again, by a gantryd in the place of the first.
    link: the program's link when the migration begins, in the words of `gantry ls`.
    listens: gantryds listen over tcp, and are reached so.
    from_shm: the program attached through shared memory to a third gantryd, and its vGPU came from
        there over tcp; so the program has been through one migration.
    svm: the program may use shared virtual memory, which does not go over tcp.
    mode: the mode that `gantry mode` switches to, if the vGPU leaves the program's process
        ("remote") or enters it ("passthrough").
    ways: the command's options. While the program stays at the source, all of them are tried.
    options: the command's options in each way.
    """

    name: str
    to: str
    link: str = "shm"
    listens: bool = False
    from_shm: bool = False
    svm: bool = True
    stop: bool = False
    mode: str = None
    ways: tuple = ((),)
    options: tuple = ()
    programs: tuple = ("moved",)


LIVE_OR_COPY = ((), ("--stop-and-copy",))

ROUTES = {route.name: route for route in (
    Route("local", "local", ways=((), ("--rounds", "2"), ("--stop-and-copy",)),
          programs=("busy", "moved")),
    Route("out-of-program", "local", "direct", mode="remote", ways=LIVE_OR_COPY,
          programs=("busy",)),
    Route("into-program", "local", mode="passthrough", programs=("busy",)),
    Route("tcp-same-daemon", "local", "tcp", listens=True, ways=LIVE_OR_COPY),
    Route("unix", "gantryd", ways=LIVE_OR_COPY),
    Route("tcp", "gantryd", "tcp", listens=True, ways=LIVE_OR_COPY, options=("--link", "tcp")),
    Route("shm-to-tcp", "gantryd", listens=True, svm=False, ways=LIVE_OR_COPY,
          options=("--link", "tcp")),
    Route("tcp-to-shm", "gantryd", "tcp", listens=True, ways=LIVE_OR_COPY),
    Route("back-to-shm", "gantryd", "tcp", listens=True, from_shm=True, svm=False,
          ways=LIVE_OR_COPY),
    Route("checkpoint", "file"),
    Route("file", "file", stop=True),
    Route("file-tcp", "file", "tcp", listens=True, stop=True),
)}

# Classes of routes. "local/busy" is the route with that program alone.
BUSY = ("local/busy",)
OUT = ("out-of-program",)
INTO = ("into-program",)
IN_PROCESS = (*OUT, *INTO)
SAME_DAEMON = ("local", "tcp-same-daemon")
UNIX = ("unix",)
TO_SHM = ("tcp-to-shm", "back-to-shm")
OVER_TCP = ("tcp", "shm-to-tcp", *TO_SHM)
BETWEEN = (*UNIX, *OVER_TCP)
COPY = ("checkpoint",)
STOP_SHM = ("file",)
STOP_TCP = ("file-tcp",)
STOP = (*STOP_SHM, *STOP_TCP)
FILES = (*COPY, *STOP)


@dataclasses.dataclass(frozen=True)
class Fault:
    """A party that is killed at a fault point, POINT or POINT:N for the N-th time there, and the
    routes by expected outcome."""

    party: str
    point: str
    expected: dict


def faults(party, *rows):
    return [Fault(party, point, expected) for point, expected in rows]


FAULTS = (
    # The source has the only current copy of the vGPU until the destination has all of it.
    *faults("source",
            ("move-begun", {LOST: INTO + SAME_DAEMON + BETWEEN + FILES}),
            ("move-handed", {LOST: BUSY + UNIX + FILES}),
            ("move-devices", {LOST: BUSY}),
            ("save-contents", {LOST: BUSY + FILES}),
            ("save-contents:2", {LOST: BUSY}),
            ("move-ahead", {LOST: INTO + BUSY + BETWEEN}),
            ("move-held", {LOST: BUSY + UNIX + FILES}),
            ("move-paused", {LOST: TO_SHM}),
            ("move-quiet", {LOST: INTO + SAME_DAEMON + BETWEEN + FILES}),
            ("move-told", {LOST: INTO + SAME_DAEMON + BETWEEN}),
            ("move-saved", {LOST: INTO + SAME_DAEMON + BETWEEN + FILES})),

    # Before the commit the source resumes, or the file remains.
    *faults("destination",
            ("worker-boot-received", {STAYS: OUT + BETWEEN, WAITS_IN_FILE: STOP}),
            ("worker-driver-up", {STAYS: UNIX, WAITS_IN_FILE: STOP}),
            ("load-begun", {STAYS: OUT + SAME_DAEMON + BETWEEN, WAITS_IN_FILE: STOP}),
            ("load-device", {STAYS: BUSY}),
            ("load-entry", {STAYS: SAME_DAEMON + BETWEEN, WAITS_IN_FILE: STOP}),
            ("load-entry:30", {STAYS: BUSY}),
            ("load-contents", {STAYS: OUT + SAME_DAEMON + BETWEEN, WAITS_IN_FILE: STOP}),
            ("load-contents:20", {STAYS: BUSY}),
            ("load-kept", {STAYS: BUSY}),
            ("load-last", {STAYS: OUT + SAME_DAEMON + BETWEEN}),
            ("load-done", {STAYS: OUT + SAME_DAEMON + BETWEEN, WAITS_IN_FILE: STOP}),
            ("load-go", {LOST_AFTER_THE_MOVE: OUT + BUSY})),

    # A gantryd's workers die with it. Over tcp the source's last message may die with it as well.
    *faults("source-gantryd",
            ("daemon-before-move-told", {LOST: UNIX, MOVES_OR_LOST: OVER_TCP}),
            ("daemon-before-save", {LOST: IN_PROCESS + BUSY + UNIX + STOP,
                                    MOVES_OR_LOST: OVER_TCP}),
            ("daemon-before-leave", {LOST: UNIX, MOVES_OR_LOST: OVER_TCP}),
            ("daemon-leave-told", {MOVES: UNIX, MOVES_OR_LOST: OVER_TCP}),
            ("daemon-left", {MOVES: BETWEEN}),
            ("daemon-before-commit", {LOST: IN_PROCESS + BUSY}),
            ("daemon-committed", {LOST: IN_PROCESS + BUSY}),
            ("daemon-checkpoint-saved", {LOST: STOP}),
            ("daemon-before-stop", {LOST_WITH_FILE: STOP}),
            ("daemon-stopped", {WAITS_IN_FILE: STOP}),
            ("daemon-waits-far", {WAITS_IN_FILE: STOP_TCP})),

    # A program with its own link to gantryd is told of the restore at once; over tcp it asks.
    *faults("destination-gantryd",
            ("daemon-ticket-given", {STAYS_AND_MOVES_LATER: BETWEEN}),
            ("daemon-claimed", {STAYS_AND_MOVES_LATER: BETWEEN}),
            ("daemon-before-ready", {STAYS_AND_MOVES_LATER: BETWEEN}),
            ("daemon-before-go", {LOST_AFTER_THE_MOVE: BETWEEN}),
            ("daemon-gone-over", {LOST_AFTER_THE_MOVE: BETWEEN}),
            ("daemon-restore-begun", {WAITS_IN_FILE: STOP}),
            ("daemon-before-commit", {WAITS_IN_FILE: STOP}),
            ("daemon-program-told", {LOST: STOP_SHM, WAITS_IN_FILE: STOP_TCP}),
            ("daemon-committed", {LOST: STOP_SHM, WAITS_IN_FILE: STOP_TCP})),

    # gantryd needs no message of gantry's to resume the vGPU.
    *faults("gantry",
            ("ctl-announced", {STAYS_AND_MOVES_LATER: BETWEEN}),
            ("ctl-received", {STAYS: COPY + STOP_SHM}),
            ("ctl-before-rename", {STAYS: COPY, WAITS_IN_FILE: STOP}),
            ("ctl-before-keep", {STAYS_WITH_FILE: STOP}),
            ("ctl-kept", {WAITS_IN_FILE: STOP})),

    # In-process the program is the source or the destination, too.
    *faults("program",
            ("move-begun", {ENDS: OUT}),
            ("move-quiet", {ENDS: OUT}),
            ("move-saved", {ENDS: OUT}),
            ("load-begun", {ENDS: INTO}),
            ("load-contents", {ENDS: INTO}),
            ("load-kept", {ENDS: INTO}),
            ("load-done", {ENDS: INTO}),
            ("load-go", {ENDS: INTO}),
            ("program-move-told", {ENDS: BETWEEN}),
            ("program-claimed", {ENDS: BETWEEN}),
            ("program-stands", {ENDS: TO_SHM}),
            ("program-before-go", {ENDS: BETWEEN}),
            ("program-gone-over", {ENDS: BETWEEN})),
)


@dataclasses.dataclass(frozen=True)
class Cell:
    route: str
    party: str
    point: str
    program: str
    outcome: str

    @property
    def name(self):
        return "/".join((self.route, self.party, self.point, self.program))


def cells():
    """All cells, in the order of the tables."""
    found = []
    for fault in FAULTS:
        for outcome, places in fault.expected.items():
            for place in places:
                route, _, program = place.partition("/")
                for each in [program] if program else ROUTES[route].programs:
                    found.append(Cell(route, fault.party, fault.point, each, outcome))
    return found
