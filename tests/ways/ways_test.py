#!/usr/bin/python3
"""Which files one task, one slice's move and one configuration change pass through, in the order in which each is first
entered, and how often it is entered from another; compared with the tables of CONTRIBUTING.md, and held to bounds.

A way leads through threads: it leaves one where the next begins to work on it. What other threads do meanwhile is not of
it; nor are framework/base, the stores, and what the compiler made of a type by itself. A header and its source count once.
Run by ctest; with --ratchet it lowers the bounds to what it finds.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

SOURCE = os.environ["MILLRACE_SOURCE_DIR"]
BINARY = os.environ["MILLRACE_BINARY_DIR"]
PROGRAM = os.path.join(BINARY, "tests/ways/millrace_ways")
COUNTED = ("framework/", "coordinator/")
NOT_COUNTED = ("framework/base/", "framework/store/", "coordinator/testing/")
ENDS_OF_TASKS = ("a task is added", "it has ended", "a slice moves")
PATH = r"`((?:framework|coordinator)/[^`]+\.(?:h|cc))`"

# A note of the program: a call that is entered or left, with its file (none: it is not ours), or a mark.
Note = collections.namedtuple("Note", "thread kind file function text")


def thing_of(file):
    return os.path.splitext(file)[0]


def counts(file):
    return file is not None and file.startswith(COUNTED) and not file.startswith(NOT_COUNTED)


def run(folder):
    trace = os.path.join(folder, "trace")
    plugins = os.path.join(folder, "plugins")
    os.mkdir(plugins, 0o755)
    subprocess.run(["install", "-m", "755", os.path.join(BINARY, "plugins/noop.so"), plugins], check=True)
    subprocess.run([PROGRAM, plugins, folder, trace], check=True)
    with open(trace, encoding="utf-8") as lines:
        return [line.rstrip("\n").split(" ", 3 if line.split(" ", 2)[1] != "!" else 2) for line in lines]


def symbols(notes):
    """By object and address: the file, from the project's folder on, the line, and the function."""
    wanted = collections.defaultdict(set)
    for note in notes:
        if note[1] != "!":
            wanted[note[3]].add(note[2])
    found = {}
    for place, addresses in wanted.items():
        listed = sorted(addresses)
        told = subprocess.run(["addr2line", "-f", "-C", "-e", place], input="\n".join(listed), text=True, check=True,
                              capture_output=True).stdout.splitlines()
        for address, function, line in zip(listed, told[::2], told[1::2]):
            path, _, number = line.partition(":")
            path = os.path.relpath(os.path.realpath(path), os.path.realpath(SOURCE)) if path.startswith("/") else path
            found[place, address] = (path, int(number.split(" ")[0]) if number[:1].isdigit() else 0, function)
    return found


def is_made_by_the_compiler(path, number, texts={}):
    """A function that stands where its type begins: copies, destructors."""
    if path not in texts:
        with open(os.path.join(SOURCE, path), encoding="utf-8") as text:
            texts[path] = text.read().splitlines()
    line = texts[path][number - 1] if 0 < number <= len(texts[path]) else ""
    return re.match(r"\s*(template <.*> *)?(struct|class|enum|union)\b", line) is not None


def read(raw):
    known = symbols(raw)
    kept = {}
    for key, (path, number, _) in known.items():
        ours = path.startswith(("framework/", "coordinator/", "handlers/"))
        kept[key] = path if ours and not is_made_by_the_compiler(path, number) else None
    notes = []
    for each in raw:
        if each[1] == "!":
            notes.append(Note(int(each[0]), "!", None, None, each[2]))
        else:
            key = (each[3], each[2])
            notes.append(Note(int(each[0]), each[1], kept[key], known[key][2], None))
    return notes


class Way:
    """The things of a way, by their first entry."""

    def __init__(self):
        self.entries = {}  # how often it was entered from another
        self.files = collections.defaultdict(set)
        self.leads_on = set()  # those that have called another

    def enter(self, file):
        thing = thing_of(file)
        self.entries[thing] = self.entries.get(thing, 0) + 1
        self.files[thing].add(file)


class Trace:
    def __init__(self, notes):
        self.notes = notes

    def first(self, start, wanted, what):
        for i in range(start, len(self.notes)):
            if wanted(self.notes[i]):
                return i
        sys.exit(f"ways_test: after note {start} there is no {what}")

    def last(self, end, wanted, what):
        for i in range(end - 1, -1, -1):
            if wanted(self.notes[i]):
                return i
        sys.exit(f"ways_test: before note {end} there is no {what}")

    def mark(self, start, text, thread=None):
        return self.first(start, lambda n: n.text == text and thread in (None, n.thread), text)

    def statement(self, start, name):
        """A call of the store, by any thread."""
        return self.first(start, lambda n: n.kind == ">" and f"TaskStore::{name}(" in (n.function or ""), name)

    def rest(self, start, thread):
        """Where the thread has done what it woke up for, and waits for the next."""
        return self.first(start, lambda n: n.thread == thread and n.kind == ">" and
                          "Signal::WaitFor(" in (n.function or ""), "rest")

    def entry(self, start, thread, thing):
        return self.first(start, lambda n: n.thread == thread and n.kind == ">" and n.file and
                          thing_of(n.file) == thing, f"call of {thing}")

    def end_of(self, entry):
        """Of the call that is entered there."""
        depth = 0
        for i in range(entry, len(self.notes)):
            if self.notes[i].thread == self.notes[entry].thread and self.notes[i].kind != "!":
                depth += 1 if self.notes[i].kind == ">" else -1
                if depth == 0:
                    return i
        sys.exit(f"ways_test: the call at note {entry} does not end")

    def next_of(self, start, thread):
        return self.first(start, lambda n: n.thread == thread, f"note of thread {thread}")

    def follow(self, way, thread, start, end):
        """What the thread does between two notes. Whose call is still under way at the beginning is on the way, once
        it calls somebody else."""
        frames = []
        for i in range(end):
            note = self.notes[i]
            if note.thread != thread or note.kind == "!":
                continue
            if note.kind == "<":
                if frames:
                    frames.pop()
                continue
            file = note.file if counts(note.file) else None
            if i >= start and file:
                caller = next((frame for frame in reversed(frames) if frame), None)
                if caller and thing_of(caller) != thing_of(file):
                    if thing_of(caller) not in way.entries:
                        way.enter(caller)
                    way.leads_on.add(thing_of(caller))
                if not caller or thing_of(caller) != thing_of(file):
                    way.enter(file)
                way.files[thing_of(file)].add(file)
            frames.append(file)


def ways_of_tasks(trace, claims, waits, settles):
    """For each task that ended: its way to its handler, and back. The things that claim, that hand it to a lane, and
    that settle it are where it changes threads."""
    notes = trace.notes
    in_handler = lambda note, kind: note.kind == kind and (note.file or "").startswith("handlers/")
    for begin in [i for i, note in enumerate(notes) if note.text == "a task is added"]:
        end = trace.first(begin + 1, lambda n: n.kind == "!" and n.text in ENDS_OF_TASKS, "end")
        if notes[end].text != "it has ended":
            continue
        there, back = Way(), Way()
        claim = trace.statement(begin, "Claim")
        scan = notes[claim].thread
        scanned = trace.last(claim, lambda n: n.thread == scan and n.kind == "<" and
                             "TaskStore::Scan(" in (n.function or ""), "scan")
        waiting = trace.entry(claim, scan, waits)
        trace.follow(there, scan, trace.entry(scanned, scan, claims), trace.end_of(waiting))
        called = trace.first(waiting, lambda n: in_handler(n, ">"), "handler")
        lane = notes[called].thread
        trace.follow(there, lane, trace.next_of(waiting, lane), called)
        settle = notes[trace.statement(called, "Settle")].thread
        settling = trace.entry(called, lane, settles)
        returned = trace.last(settling, lambda n: n.thread == lane and in_handler(n, "<"), "handler's end")
        trace.follow(back, lane, returned, trace.end_of(settling))
        trace.follow(back, settle, trace.next_of(settling, settle), end)
        yield there, back


def way_of_slice(trace):
    notes = trace.notes
    written = trace.mark(trace.mark(0, "a slice moves"), "the plan is written")
    leader = notes[written].thread
    decides = trace.last(written, lambda n: n.thread == leader and n.text == "a decision begins", "decision")
    way = Way()
    trace.follow(way, leader, decides, written)
    news = trace.first(written, lambda n: n.text == "there is a new page" and n.thread != leader, "page")
    published = trace.mark(news, "it is published", notes[news].thread)
    trace.follow(way, notes[news].thread, news, published)
    taken = trace.mark(published, "new slices are taken")
    watch = notes[taken].thread
    trace.follow(way, watch, taken, trace.rest(taken, watch))
    scan = trace.statement(taken, "Scan")
    trace.follow(way, notes[scan].thread, taken, scan)
    return way


def way_of_configuration(trace):
    notes = trace.notes
    changed = trace.mark(trace.mark(0, "the configuration changes"), "it has changed")
    news = trace.last(changed, lambda n: n.text == "there is a new configuration", "news")
    published = trace.mark(news, "it is published", notes[news].thread)
    way = Way()
    trace.follow(way, notes[news].thread, news, published)
    taken = trace.mark(published, "a new configuration is taken")
    thread = notes[taken].thread
    trace.follow(way, thread, taken, trace.mark(taken, "the same configuration is taken", thread))
    return way


def tables():
    """By way: for each row of its table what happens, and the things that it names, in their order."""
    with open(os.path.join(SOURCE, "CONTRIBUTING.md"), encoding="utf-8") as text:
        parts = re.split(r"^### ", text.read(), flags=re.M)
    found = {}
    for part in parts:
        rows = [line.split("|")[1:3] for line in part.splitlines() if line.startswith("|")][2:]
        found[part.splitlines()[0]] = [(what.strip(), [thing_of(path) for path in re.findall(PATH, where)])
                                       for what, where in rows]
    return found


def first_named(rows, words):
    for what, things in rows:
        if words in what and things:
            return things[0]
    sys.exit(f"ways_test: CONTRIBUTING.md has no row of `{words}`")


BOUNDS = os.path.join(SOURCE, "tests/ways/ways.bounds")


def bounds():
    with open(BOUNDS, encoding="utf-8") as lines:
        return {name: int(number) for name, number in (line.split() for line in lines)}


class Report:
    def __init__(self, named):
        self.named = named
        self.figures = {}

    def tell(self, title, way, table, named_before=()):
        rows = self.named[table]
        named = [thing for _, things in rows for thing in things]
        known = named + [thing for _, things in self.named["What every way passes"] for thing in things]
        files = sum(len(way.files[thing]) for thing in way.entries)
        print(f"\n{title}: {len(way.entries)} things in {files} files, {sum(way.entries.values())} entries; "
              f"`.` calls no other, `?` is not named in CONTRIBUTING.md")
        for thing, times in way.entries.items():
            told = (" " if thing in way.leads_on else ".") + (" " if thing in known else "?")
            suffixes = " ".join(sorted(os.path.splitext(file)[1] for file in way.files[thing]))
            print(f"  {times:4d} {told} {thing} {suffixes}")
        order = [named.index(thing) for thing in way.entries if thing in named]
        late = [named[number] for i, number in enumerate(order) if i and number < max(order[:i])]
        if late:
            print("  named earlier than entered:", " ".join(late))
        return len([thing for thing in way.entries if thing not in known])

    def hold(self, name, what, figure, goal=None):
        self.figures[name] = figure
        bound = bounds()[name]
        aim = f", the goal {goal}" if goal is not None else ""
        print(f"{what}: {figure} (bound {bound}{aim})")
        if "MILLRACE_REPORT" in os.environ:
            with open(os.environ["MILLRACE_REPORT"], "a", encoding="utf-8") as report:
                report.write(json.dumps({"scenario": "ways", "asked": f"{what}: at most {bound}{aim}",
                                         "measured": str(figure), "pass": figure <= bound}) + "\n")
        return figure <= bound


def again(way):
    return len([times for times in way.entries.values() if times > 1])


def main():
    with tempfile.TemporaryDirectory(prefix="millrace_ways_") as folder:
        trace = Trace(read(run(folder)))
    report = Report(tables())
    rows = report.named["The way of a task"]
    both = list(ways_of_tasks(trace, first_named(rows, "it is claimed"), first_named(rows, "it waits for a thread"),
                              first_named(rows, "it is settled")))
    # Threads do not meet in the same way each time: what every task enters is the way.
    fewest = lambda ways: min(ways, key=lambda way: (len(way.entries), sum(way.entries.values())))
    there, back = fewest([there for there, _ in both]), fewest([back for _, back in both])
    moved, configured = way_of_slice(trace), way_of_configuration(trace)
    unnamed = [report.tell("A task, from claim to handler", there, "The way of a task"),
               report.tell("A task, from handler to settle", back, "The way of a task"),
               report.tell("A slice, from plan to scan", moved, "The way of a slice"),
               report.tell("A configuration change", configured, "The way of a configuration change")]
    print()
    held = [report.hold("task", "A task enters, from claim to settle", len({*there.entries, *back.entries}), 12),
            report.hold("task_again", "More than once on its way there, or back", again(there) + again(back), 0),
            report.hold("slice", "A slice enters, from plan to scan", len(moved.entries), 14),
            report.hold("slice_again", "More than once", again(moved), 0),
            report.hold("configuration", "A configuration change enters", len(configured.entries)),
            report.hold("unnamed", "Entered, and not named in CONTRIBUTING.md", sum(unnamed), 0)]
    if "--ratchet" in sys.argv[1:]:
        lower = {name: min(bound, report.figures[name]) for name, bound in bounds().items()}
        with open(BOUNDS, "w", encoding="utf-8") as lines:
            lines.writelines(f"{name} {number}\n" for name, number in lower.items())
    return 0 if all(held) else 1


sys.exit(main())
