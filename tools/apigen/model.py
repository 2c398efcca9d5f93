# SPDX-License-Identifier: Apache-2.0
"""Reads an API description into a model and checks it. docs/api-description.md is the manual."""
import re
from dataclasses import dataclass, field

import dialects


class DescriptionError(Exception):
    def __init__(self, path, line, message):
        super().__init__(f"{path}:{line}: {message}")


@dataclass
class Param:
    line: int
    ctype: str            # as C writes it, without the name: "const float *"
    name: str
    mode: str             # value handle handles in out string list vec area fixed null waits event err local callback
    kind: str = ""        # of handle and handles
    length: str = ""      # an expression of the other parameters
    in_bytes: bool = False
    optional: bool = False
    output: bool = False  # of area
    valid: str = ""       # the parameter with the number of valid elements of this output
    always: bool = False  # an output that is written on failure, too
    callback: str = ""    # the parameter list of a callback
    error: str = ""       # of null: the result for any other pointer
    mark: str = ""        # of a callback: its dialect's CALLBACK

    def declare(self):
        if self.mode == "callback":
            return f"void({self.mark}*{self.name})({self.callback})"
        return f"{self.ctype}{'' if self.ctype.endswith('*') else ' '}{self.name}"


@dataclass
class Call:
    line: int
    name: str
    number: int
    served: str           # local forward info create command retain release absent
    message: bool         # a request of Gantry's own, no entry point
    since: str = ""
    extension: str = ""   # the extension that the entry point belongs to; "": it is the core's
    kind: str = ""        # the kind of handle that a create makes, a retain counts, an info asks about
    error: str = ""       # an absent call's result
    slow: bool = False
    quiet: bool = False
    stub: bool = False    # the guest's stub is handwritten
    check: bool = False   # a handwritten check judges the arguments in the program
    ordered: bool = False # a command that, without a wait list, follows all before it in its queue
    fence: bool = False   # a command that all after it in its queue follow
    many: bool = False    # a command for which the driver runs several: its event's times are not the command's
    host: bool = False    # the host's handler is handwritten
    made: bool = False    # a handwritten hook fills in the guest's object
    judge: bool = False   # a handwritten hook judges a command that cannot be given to the driver yet
    event: str = ""       # the command's type, which its event reports
    track: list = field(default_factory=list)
    local_names: list = field(default_factory=list)
    asks: list = field(default_factory=list)     # the questions that travel
    keys: dict = field(default_factory=dict)     # of a list: (the error for any other key, the keys that may stand in it)
    params: list = field(default_factory=list)
    dialect: object = None

    def param(self, mode):
        return next((p for p in self.params if p.mode == mode), None)

    @property
    def travels(self):
        return self.served not in ("local", "absent", "retain", "release")

    def wire_params(self):
        return [p for p in self.params if p.mode not in ("local", "callback", "fixed", "null", "waits", "event", "err")]


@dataclass
class Api:
    name: str = ""
    dialect: object = dialects.DEFAULT
    types: dict = field(default_factory=dict)
    handles: list = field(default_factory=list)
    calls: list = field(default_factory=list)
    absent: list = field(default_factory=list)


SERVED = ("local", "forward", "info", "create", "command", "retain", "release", "absent")
NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class Reader:
    def __init__(self, path, text):
        self.path, self.api, self.call, self.numbers = path, Api(), None, {}
        for number, line in enumerate(text.splitlines(), 1):
            body = line.split("#", 1)[0].rstrip()
            if not body.strip():
                continue
            self.at = number
            if body[0].isspace():
                self.inside(body.strip())
            else:
                self.outside(body.split())
        self.finish()

    def fail(self, message, line=None):
        raise DescriptionError(self.path, line or self.at, message)

    def outside(self, words):
        what = words[0]
        self.call = None
        if what == "api" and len(words) == 2:
            self.api.name = words[1]
        elif what == "dialect" and len(words) == 2:
            if words[1] not in dialects.DIALECTS:
                self.fail(f"there is no dialect {words[1]}")
            if self.api.calls:
                self.fail("the dialect is said before the first call")
            self.api.dialect = dialects.DIALECTS[words[1]]
        elif what == "types" and len(words) > 2:
            if words[1] not in ("u32", "i32", "u64"):
                self.fail(f"a scalar is u32, i32 or u64, not {words[1]}")
            for t in words[2:]:
                self.api.types[t] = words[1]
        elif what == "handles":
            self.api.handles += words[1:]
        elif what == "absent":
            self.api.absent += words[1:]
        elif what in ("call", "message"):
            self.header(what, words[1:])
        else:
            self.fail(f"'{what}' is not a word of this language at the start of a line")

    def header(self, what, words):
        if len(words) < 3 or not NAME.match(words[0]):
            self.fail(f"{what} NAME NUMBER ... is what a {what} starts with")
        name = words.pop(0)
        if not words[0].isdigit():
            self.fail(f"{name} has no number")
        number = int(words.pop(0))
        if number in self.numbers:
            self.fail(f"number {number} of {name} is taken by {self.numbers[number]}")
        if not 0 < number < 65536:
            self.fail(f"number {number} of {name} does not fit in 16 bits")
        if name in self.numbers.values():
            self.fail(f"{name} is described twice")
        self.numbers[number] = name
        since = extension = ""
        if what == "call":
            if len(words) < 3 or words[0] not in ("since", "in"):
                self.fail(f"{name} does not say since which version it is there, or in which extension")
            if words.pop(0) == "since":
                since = words.pop(0)
            else:
                extension = words.pop(0)
        served = words.pop(0)
        if served not in SERVED:
            self.fail(f"{name} is served '{served}', which is none of {' '.join(SERVED)}")
        call = Call(self.at, name, number, served, what == "message", since, extension, dialect=self.api.dialect)
        if served in ("create", "retain", "release", "info"):
            if not words or words[0] not in self.api.handles:
                self.fail(f"{name} does not say which handle it is about")
            call.kind = words.pop(0)
        if served == "absent":
            if not words:
                self.fail(f"{name} is absent but names no error")
            call.error = words.pop(0)
        for word in words:
            if word not in ("slow", "quiet", "stub", "check", "ordered", "fence", "many"):
                self.fail(f"'{word}' says nothing about {name}")
            setattr(call, word, True)
        self.call = call
        self.api.calls.append(call)

    def inside(self, body):
        if self.call is None:
            self.fail("an indented line belongs to no call")
        words = body.split()
        if words[0] in ("host", "made", "judge") and len(words) == 1:
            setattr(self.call, words[0], True)
        elif words[0] == "event" and len(words) == 2:
            self.call.event = words[1]
        elif words[0] == "track":
            self.call.track = words[1:]
        elif words[0] == "local":
            self.call.local_names += words[1:]
        elif words[0] == "asks":
            self.call.asks += words[1:]
        elif words[0] == "keys":
            if len(words) < 3:
                self.fail("keys LIST ERROR [KEY...] is how the keys of a list are said")
            error, keys = self.call.keys.setdefault(words[1], (words[2], []))
            if error != words[2]:
                self.fail(f"an unknown key of {words[1]} is {error} already")
            keys += words[3:]
        elif words[0] == "callback":
            m = re.match(r"^callback\s+(\w+)\((.*)\)$", body)
            if not m:
                self.fail("callback NAME(PARAMETERS) is what a callback looks like")
            self.call.params.append(Param(self.at, "", m.group(1), "callback", callback=m.group(2),
                                          mark=self.api.dialect.CALLBACK))
        else:
            self.parameter(body)

    def parameter(self, body):
        if ":" not in body:
            self.fail("a parameter says after a colon how it travels")
        left, right = (s.strip() for s in body.split(":", 1))
        m = re.match(r"^(.*?[\s*])(\w+)$", left)
        if not m:
            self.fail(f"'{left}' is not a C declaration")
        ctype = re.sub(r"\s+", " ", m.group(1)).strip().replace(" *", " *")
        p = Param(self.at, ctype, m.group(2), "")
        if any(q.name == p.name for q in self.call.params):
            self.fail(f"{p.name} is named twice")
        m = re.match(r"^(.*)\s+valid\s+(\w+)$", right)
        if m:
            right, p.valid = m.groups()
        if right.endswith(" always"):
            right, p.always = right[:-len(" always")], True
        if right.endswith("?"):
            right, p.optional = right[:-1], True
        self.mode(p, right)
        self.call.params.append(p)

    def mode(self, p, right):
        words = right.split()
        first = words[0] if words else ""
        length = re.match(r"^(?:(area) )?(in|out)( bytes)?\[(.+)\]$", right)
        if right in ("value", "string", "list", "waits", "event", "err", "local"):
            p.mode = right
        elif right in self.api.handles:
            p.mode, p.kind = "handle", right
        elif first == "handles":
            m = re.match(r"^handles (\w+)\[(.+)\]$", right)
            if not m or m.group(1) not in self.api.handles:
                self.fail("handles KIND[LENGTH] is what an array of handles looks like")
            p.mode, p.kind, p.length = "handles", m.group(1), m.group(2)
        elif length:
            p.mode = "area" if length.group(1) else length.group(2)
            p.output = length.group(2) == "out"
            p.in_bytes, p.length = bool(length.group(3)), length.group(4)
        elif right == "vec[3]":
            p.mode = "vec"
        elif first == "fixed" and len(words) == 2:
            p.mode, p.length = "fixed", words[1]
        elif first == "null" and len(words) == 2:
            p.mode, p.error = "null", words[1]
        else:
            self.fail(f"'{right}' is no way for {p.name} to travel")

    def finish(self):
        if not self.api.name:
            self.fail("the description names no api", 1)
        for c in self.api.calls:
            Checker(self, c).run()


class Checker:
    """The checks beyond syntax."""

    def __init__(self, reader, call):
        self.reader, self.call, self.dialect = reader, call, call.dialect

    def fail(self, message, line=None):
        self.reader.fail(f"{self.call.name}: {message}", line or self.call.line)

    def run(self):
        c = self.call
        names = {p.name: p for p in c.params}
        for p in c.params:
            self.parameter(p, names)
        self.words()
        if c.served == "create":
            self.create()
        if c.served == "info":
            self.info()
        if c.served == "command":
            self.command()
        else:
            self.request()
        if c.served in ("retain", "release") and [p.kind for p in c.params] != [c.kind]:
            self.fail(f"takes one {c.kind} and nothing else")
        if c.travels and not c.message and not (c.stub or c.params and c.params[0].mode == "handle"):
            self.fail("reaches its session through no handle: make it local, with a message")
        if c.travels and any(p.mode == "callback" for p in c.params):
            self.fail("has a callback, which cannot travel: make it local, with a message")
        self.track(names)
        self.outputs(names)
        self.keys(names)

    def words(self):
        """Refuses words that have no effect on their call."""
        c = self.call
        for word, good, where in (
                ("check", c.served == "command" and not c.message and not c.stub, "a command's generated stub has"),
                ("ordered", c.served == "command", "a command has"), ("fence", c.served == "command", "a command has"),
                ("many", c.served == "command", "a command has"),
                ("event", c.served == "command" and not c.message and not c.stub, "a command's generated stub has"),
                ("made", c.served == "create" and not c.message, "a creating entry point has"),
                ("judge", c.served == "command", "a command has"),
                ("local_names", c.served == "info", "an info has"),
                ("asks", c.served == "info", "an info has"),
                ("keys", c.served == "create", "a creating request has"),
                ("slow", c.travels and c.served != "command", "a request that is waited for has"),
                ("quiet", c.served == "forward" and c.message, "a message that is forwarded has"),
                ("stub", c.travels and not c.message, "an entry point that travels has"),
                ("host", c.travels, "a request has")):
            if getattr(c, word) and not good:
                self.fail(f"'{'local' if word == 'local_names' else word}' is what only {where}")
        if c.slow and c.quiet:
            self.fail("is slow and quiet: nobody would wait for it")

    def create(self):
        c = self.call
        if not c.param("err"):
            self.fail(f"creates an object but has no {self.dialect.ERROR}")
        if c.track[:1] != ["parent"]:
            self.fail("creates an object but does not say what it is tracked by: track parent PARAMETER")

    def info(self):
        """A query's stub relies on these: an answer, its room, and its length."""
        name, room, answer, used = self.dialect.QUERY
        shape = {p.name: (p.ctype, p.mode, p.length) for p in self.call.params}
        if shape.get(answer, ("", ""))[1] != "out":
            self.fail(f"is an info without a {answer}")
        if shape[answer][2] != room or shape.get(room, ("", ""))[1] != "value":
            self.fail(f"is an info whose {answer} has not the size {room}")
        if shape.get(used) != ("size_t *", "out", "1"):
            self.fail(f"is an info without a {used} : out[1]")
        if shape.get(name, ("", ""))[1] != "value":
            self.fail(f"is an info without a {name}")
        if not self.call.asks:
            self.fail("is an info that does not say which names may travel: asks NAME...")
        self.once(self.call.asks)

    def keys(self, names):
        """The driver could take an unknown key's value for a pointer."""
        for p in self.call.params:
            if p.mode == "list" and p.name not in self.call.keys:
                self.fail(f"does not say which keys may stand in {p.name}: keys {p.name} ERROR [KEY...]", p.line)
        for name, (error, keys) in self.call.keys.items():
            if error == "host" and (keys or not self.call.host):
                self.fail(f"leaves the keys of {name} to a handler, and has none, or names them")
            if name not in names or names[name].mode != "list":
                self.fail(f"says the keys of {name}, which is no list")
            self.once(keys)

    def once(self, names):
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice:
            self.fail(f"says {twice} twice")

    def command(self):
        c = self.call
        if not c.params or c.params[0].kind != self.dialect.QUEUE_KIND or c.params[0].mode != "handle":
            self.fail("is a command whose first parameter is no queue")
        if not (c.message or c.stub) and not c.event:
            self.fail("is a command that does not say which type its event has")
        tail = [(p.name, p.mode) for p in c.params if p.mode in ("waits", "event")]
        wanted = list(zip(self.dialect.WAITS, ("waits", "waits", "event")))
        if tail != wanted and not (c.message and not tail):
            self.fail("is a command that does not end with a wait list and an event")
        if tail and [p.name for p in c.params[-3:]] != [name for name, _ in wanted]:
            self.fail("is a command that does not end with a wait list and an event")
        for p in c.params:
            if p.mode in ("out", "string", "list"):
                self.fail(f"{p.name} cannot travel with a command: nobody waits for its answer, and its end is not known", p.line)
            if p.mode == "handles" and p.kind != self.dialect.MEMORY_KIND:
                self.fail(f"{p.name}: an array of a command's holds memory objects", p.line)
        # What struct gn_command has room for.
        count = {mode: sum(p.mode == mode for p in c.params) for mode in ("handle", "handles", "area", "in")}
        for mode, most in (("handle", 4), ("handles", 1), ("area", 1), ("in", 3)):
            if count[mode] > most:
                self.fail(f"has {count[mode]} parameters '{mode}', and a command has room for {most}")

    def request(self):
        c = self.call
        for p in c.params:
            if c.travels and p.mode in ("waits", "event"):
                self.fail(f"{p.name} belongs to a command", p.line)
            if c.travels and p.mode == "vec":
                self.fail(f"{p.name} is a vector, which only a command has", p.line)
            if c.travels and not c.message and p.mode in ("in", "out", "handles", "string", "list") and not p.optional:
                self.fail(f"{p.name} may be NULL, since a program may pass that: end it with a question mark", p.line)
            if p.mode == "null" and (c.message or c.stub or not c.travels):
                self.fail(f"{p.name} must be NULL, and only a generated entry point makes sure of that", p.line)
            if c.quiet and p.mode == "out":
                self.fail(f"{p.name} is an output of a quiet message: nobody waits for it", p.line)
        # What struct gn_request has room for.
        count = {mode: sum(p.mode == mode for p in c.params) for mode in ("handle", "handles", "in", "string", "list", "out")}
        for mode, most in (("handle", 8), ("handles", 2), ("out", 4)):
            if count[mode] > most:
                self.fail(f"has {count[mode]} parameters '{mode}', and a request has room for {most}")
        ins = count["in"] + count["handles"] + count["string"] + count["list"]
        if ins > 6:
            self.fail(f"has {ins} inputs, and a request has room for 6")

    def track(self, names):
        """track parent X.. | changes X [by Y] | adds X | writes X.. | writes args | creates KIND parent X.."""
        words = list(self.call.track)
        if not words:
            return
        first = words.pop(0)
        if first == "creates":
            if not words or words.pop(0) not in self.reader.api.handles:
                self.fail("'track creates' names no kind of handle")
            first = words.pop(0) if words else ""
            if first != "parent":
                self.fail("'track creates KIND' goes on with parent")
        if first not in ("parent", "changes", "adds", "writes"):
            self.fail(f"'track {first}' is none of parent, changes, adds, writes, creates")
        if first == "changes" and "by" in words:
            key = words[words.index("by") + 1:]
            del words[words.index("by"):]
            if len(key) != 1 or key[0] not in names or names[key[0]].mode not in ("value", "handle"):
                self.fail("'track changes X by' goes on with one value")
        if not words:
            self.fail(f"'track {first}' names no parameter")
        for word in words:
            p = names.get(word)
            if not p:
                self.fail(f"tracks '{word}', which is no parameter")
            written = p.mode == "handle" and p.kind in {self.dialect.MEMORY_KIND} | self.recorders()
            if first == "writes" and not written and (words, p.mode) != (["args"], "in"):
                self.fail(f"writes {word}, which is no memory object and has no recorded commands")
            if first in ("changes", "adds") and (p.mode != "handle" or len(words) > 1):
                self.fail(f"{first} {word}, which is not one handle")
            if first == "parent" and p.mode not in ("handle", "handles"):
                self.fail(f"has the parent {word}, which is no handle")
        if (first == "writes") != (self.call.served == "command") or (first == "adds" and self.call.served != "forward"):
            self.fail(f"'track {first}' is not for what is served '{self.call.served}'")

    def recorders(self):
        """The kinds of objects that record commands, to which some call adds."""
        kinds = set()
        for c in self.reader.api.calls:
            if c.track[:1] == ["adds"]:
                kinds |= {p.kind for p in c.params if p.name in c.track[1:]}
        return kinds

    def outputs(self, names):
        limits = [p.valid for p in self.call.params if p.valid]
        for p in self.call.params:
            if p.valid and (p.mode != "out" or names[p.valid].mode != "out" or names[p.valid].length != "1"):
                self.fail(f"{p.valid} cannot say how much of {p.name} holds something: both must be outputs, it one number", p.line)
            if p.valid and (limits.count(p.valid) > 1 or names[p.valid].valid):
                self.fail(f"{p.valid} limits more than one output", p.line)

    def parameter(self, p, names):
        pointer = p.ctype.endswith("*")
        if p.mode == "value":
            if pointer:
                self.fail(f"{p.name} is a pointer without a length", p.line)
            if p.ctype not in self.reader.api.types:
                self.fail(f"the width of {p.ctype} is not said in any types line", p.line)
        if p.mode in ("in", "out", "area", "list", "string", "vec", "handles") and not pointer:
            self.fail(f"{p.name} is no pointer", p.line)
        if p.mode == "handle" and pointer:
            self.fail(f"{p.name} is a pointer to handles: say how many", p.line)
        if p.mode == "in" and "void" in p.ctype and not p.in_bytes:
            self.fail(f"{p.name} points at void: its length is in bytes", p.line)
        if p.length and p.mode != "fixed":
            for word in re.findall(r"\b[a-z_]\w*", p.length):
                if word not in names and word not in ("sizeof", *self.dialect.LENGTH_WORDS) and \
                        not word.startswith(self.dialect.TYPE_PREFIX):
                    self.fail(f"the length of {p.name} uses {word}, which is no parameter", p.line)
        if p.valid and p.valid not in names:
            self.fail(f"{p.valid} is no parameter", p.line)
        if p.always and p.mode != "out":
            self.fail(f"{p.name} is no output: it cannot come always", p.line)
        if p.mode == "local" and self.call.travels:
            self.fail(f"{p.name} stays in the program, but the call travels", p.line)


def read(path):
    with open(path, encoding="utf-8") as f:
        return Reader(path, f.read()).api
