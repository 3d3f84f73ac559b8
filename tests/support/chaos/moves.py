"""Who owns which slice, read from the assign nodes, and a log of every change."""
import collections
import json
import threading
import time

from kazoo.exceptions import KazooException, NoNodeError

ASSIGN = "/millrace/default/assign"

Move = collections.namedtuple("Move", "at slice source target")  # time.monotonic(); source None: nobody had it


def read_assignments(tree, watch=None):
    """(slices, generation) of each worker, by id, its further pages included. What can't be read has no slices."""
    assignments = {}
    for name in _children(tree, ASSIGN, watch):
        folder = f"{ASSIGN}/{name}"
        pages = [folder, *(f"{folder}/{page}" for page in _children(tree, folder, watch))]
        slices, generation = set(), 0
        for page in pages:
            document = _document(tree, page, watch)
            slices.update(document.get("slices", ()))
            generation = max(generation, document.get("generation", 0))
        assignments[name] = slices, generation
    return assignments


def _children(tree, path, watch):
    try:
        return tree.get_children(path, watch)
    except NoNodeError:
        return []


def _document(tree, path, watch):
    try:
        document = json.loads(tree.get(path, watch)[0])
        return document if isinstance(document, dict) else {}
    except (NoNodeError, ValueError):
        return {}


class Moves(threading.Thread):
    """Notes each slice whose owner changes. Watches, and looks every half a second besides: a slice moves at most once
    in a few milliseconds, so nothing is missed but what happens while no server answers."""

    def __init__(self, tree):
        super().__init__(daemon=True)
        self._tree = tree
        self._changed = threading.Event()
        self._lock = threading.Condition()
        self._owners = {}
        self._moves = []
        self._looked = 0.0  # when the last look began whose findings are noted
        self.start()

    def all(self, since=0.0):
        """Since a time of time.monotonic(), first placements included."""
        with self._lock:
            return [move for move in self._moves if move.at >= since]

    def made(self, since=0.0):
        """From one worker to another."""
        return [move for move in self.all(since) if move.source is not None]

    def catch_up(self, seconds=10):
        """Until all is noted that happened before this call: who asks right after a change may come too soon."""
        asked = time.monotonic()
        self._wake(None)
        with self._lock:
            if not self._lock.wait_for(lambda: self._looked > asked, seconds):
                raise TimeoutError(f"the assignments could not be read, at rest, within {seconds} s")

    def run(self):
        while True:
            self._changed.clear()
            began = time.monotonic()
            try:
                found = read_assignments(self._tree, self._wake)
            except (KazooException, OSError):
                time.sleep(0.2)
                continue
            # What changed under the reading may be seen on both sides, or on neither: read again.
            if not self._changed.wait(0.005):
                self._note({slice_: name for name, (slices, _) in found.items() for slice_ in slices}, began)
                self._changed.wait(0.5)

    def _wake(self, _):
        self._changed.set()

    def _note(self, owners, began):
        now = time.monotonic()
        with self._lock:
            self._moves += [Move(now, slice_, self._owners.get(slice_), owner)
                            for slice_, owner in owners.items() if owner != self._owners.get(slice_)]
            self._owners.update(owners)
            self._looked = began
            self._lock.notify_all()
