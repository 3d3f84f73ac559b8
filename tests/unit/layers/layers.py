"""Keeps the layer rule: reads every #include, and a few calls that have one home, and prints what breaks it.

Usage: layers.py ROOT. Exits 1 if anything does. The tables below are the rule; a new folder needs a line.
"""
import pathlib
import re
import sys

# Folder → the folders of this project whose headers it may include, besides its own.
# Adapters (store/mysql, store/sqlite) are named by the composition root, coordinator/app, and by what is installed to be
# linked with programs of others.
BASE = {"framework/base"}
TASK = BASE | {"framework/task"}
STORE = TASK | {"framework/store"}
CONFIG = STORE | {"framework/schedule"}
PLUGIN = CONFIG | {"framework/config", "framework/files", "framework/include", "framework/plugin"}
MILL = CONFIG | {"framework/config", "framework/policy", "framework/metrics"}
WORKER = PLUGIN | MILL | {"framework/doorbell", "framework/threads", "framework/mill", "framework/worker"}
FRAMEWORK = WORKER | {"framework/http"}
ADAPTERS = {"framework/store/mysql", "framework/store/sqlite"}
COORDINATOR = FRAMEWORK | {"coordinator/coordination", "coordinator/planner"}
# What a command is made of.
LIBRARIES = COORDINATOR | ADAPTERS | {
    "framework/handler_kit", "coordinator/coordination/local", "coordinator/coordination/zookeeper", "coordinator/upkeep",
    "coordinator/alerts", "coordinator/leader", "coordinator/member", "coordinator/doctor", "coordinator/app/cli",
    "coordinator/app/input"}
ARROWS = {
    "framework/include": set(),
    "framework/base": set(),
    "framework/files": BASE,
    "framework/task": BASE,
    "framework/policy": TASK,
    "framework/schedule": TASK,
    "framework/threads": BASE,
    "framework/config": CONFIG | {"framework/files", "framework/include"},
    "framework/metrics": BASE,
    "framework/http": BASE | {"framework/threads"},
    "framework/store": TASK | {"framework/files", "framework/schedule"},
    "framework/store/sql": STORE,
    "framework/doorbell": STORE | {"framework/policy"},
    "framework/store/mysql": STORE | {"framework/store/sql", "framework/doorbell"},
    "framework/store/sqlite": STORE | {"framework/files", "framework/store/sql"},
    "framework/plugin": PLUGIN,
    "framework/mill": MILL,
    "framework/worker": WORKER,
    "framework/handler_kit": PLUGIN | {"framework/mill", "framework/worker"},
    "framework/handler_testing": WORKER | {"framework/handler_kit", "framework/store/sqlite"},
    "framework/producer": STORE | {"framework/include", "framework/store/sql"},
    "framework/producer/connected": STORE | ADAPTERS | {"framework/include", "framework/doorbell", "framework/producer"},
    "framework/testing": FRAMEWORK | {"framework/store/sqlite"},
    "coordinator/coordination": FRAMEWORK,
    "coordinator/coordination/local": FRAMEWORK | {"coordinator/coordination"},
    "coordinator/coordination/zookeeper": FRAMEWORK | {"coordinator/coordination"},
    "coordinator/planner": TASK | {"framework/policy"},
    "coordinator/upkeep": COORDINATOR,
    "coordinator/alerts": COORDINATOR,
    "coordinator/leader": COORDINATOR | {"coordinator/upkeep"},
    "coordinator/member": COORDINATOR,
    "coordinator/doctor": FRAMEWORK,
    "coordinator/testing": COORDINATOR | {"coordinator/leader", "coordinator/member", "coordinator/upkeep", "framework/testing"},
    "coordinator/app/command": LIBRARIES | {"handlers/built_in"},
    "coordinator/app/help": LIBRARIES | {"coordinator/app/command"},
    "coordinator/app/cluster": LIBRARIES | {"coordinator/app/command"},
    "coordinator/app/process": LIBRARIES | {"coordinator/app/command", "coordinator/app/cluster"},
    "coordinator/app/task": LIBRARIES | {"coordinator/app/command", "coordinator/app/cluster"},
    "coordinator/app/batch": LIBRARIES | {"coordinator/app/command", "coordinator/app/task"},
    "coordinator/app/submit": LIBRARIES | {"coordinator/app/command", "coordinator/app/task", "coordinator/app/batch"},
    "coordinator/app/config": LIBRARIES | {"coordinator/app/command", "coordinator/app/cluster", "coordinator/app/process"},
    "coordinator/app/schedule": LIBRARIES | {"coordinator/app/command", "coordinator/app/config"},
    "coordinator/app/status": LIBRARIES | {"coordinator/app/command", "coordinator/app/cluster", "coordinator/app/schedule"},
    "coordinator/app": LIBRARIES | {"coordinator/*"},
    "coordinator/app/cli": BASE,
    "coordinator/app/input": STORE | {"framework/threads", "coordinator/app/cli"},
    "handlers": {"framework/include"},  # what several plugins share
    "handlers/*": {"framework/include", "handlers"},
}

# Headers of other projects that have one home in the product.
HOMES = [
    (re.compile(r"(mysql_|mysql\.h|cppconn/|mariadb_|mariadb/|mysql/)"), {"framework/store/mysql"}, "the MySQL connector"),
    (re.compile(r"sqlite3\.h"), {"framework/store/sqlite"}, "SQLite"),
    (re.compile(r"zookeeper/"), {"coordinator/coordination/zookeeper"}, "the ZooKeeper client"),
    (re.compile(r"systemd/"), {"coordinator/app/process"}, "the service manager's library"),
    (re.compile(r"date/"), {"framework/schedule"}, "Howard Hinnant's date library"),
    (re.compile(r"glog/"), {"framework/base"}, "glog"),
    (re.compile(r"(boost/beast/|boost/asio/ssl/|openssl/)"), {"framework/http"}, "Beast, or OpenSSL,"),
    (re.compile(r"boost/outcome/"), {"framework/base"}, "Boost.Outcome"),
    (re.compile(r"filesystem$"), {"framework/files"}, "<filesystem>, whose calls throw by default,"),
]
THREADS = re.compile(r"std::(j?thread\b(?!::)|async\b)|\bpthread_create\b")
# A buffer of Beast has a commit of its own.
SWALLOWS = re.compile(r"(?<!buffer)(?<!buffer_)(->|\.)(commit|rollback|setAutoCommit)\(|OPT_RECONNECT")
# The public headers and the handlers are `millrace`; all else is `millrace::engine`, where a type may be named
# like a public one.
PUBLIC = ("framework/include", "framework/handler_testing", "framework/producer", "handlers")  # what it declares, or implements
PUBLIC_NAMESPACE = re.compile(r"^namespace millrace(?!::engine\b)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENTS_AND_TEXTS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
STD_HEADER = re.compile(r"[a-z_0-9]+(\.h)?")


def folder_of(path):
    """The rule's folder for a path below the root: the longest known prefix."""
    parts = path.split("/")
    if parts[0] == "handlers":
        return "/".join(parts[:2]) if len(parts) > 2 else "handlers"
    for length in range(len(parts) - 1, 0, -1):
        folder = "/".join(parts[:length])
        if folder in ARROWS:
            return folder
    return "/".join(parts[:2])


def allowed(folder, target):
    rule = ARROWS["handlers/*" if folder.startswith("handlers/") else folder]
    wildcard = target.split("/")[0] + "/*"
    return folder == target or target in rule or (wildcard in rule and target != "coordinator/testing")


def include_fault(folder, quote, header):
    """What is wrong with a product file's #include, or None."""
    for pattern, homes, what in HOMES:
        if pattern.match(header):
            return None if folder in homes else f"{what} is used in {', '.join(homes)} alone"
    if header.startswith("millrace/"):
        header = "framework/include/" + header
    if header.startswith("tests/"):
        return "the product never includes tests"
    if header.split("/")[0] in ("framework", "coordinator", "handlers"):
        target = folder_of(header)
        return None if allowed(folder, target) else f"{folder} may not include {target}"
    if folder == "framework/include" and not (quote == "<" and STD_HEADER.fullmatch(header)):
        return "public headers use the standard library alone"
    return None


def source_faults(path, text):
    """Yields (line, what) for one source file."""
    product = not path.startswith("tests/")
    folder = folder_of(path)
    known = folder in ARROWS or folder.startswith("handlers/")
    if product and not known:
        yield 1, f"folder {folder} has no line in tests/unit/layers/layers.py"
        return
    if product:
        for match in INCLUDE.finditer(text):
            fault = include_fault(folder, *match.groups())
            if fault:
                yield text.count("\n", 0, match.start(2)) + 1, f"{fault} (#include {match.group(2)})"
    if product and not folder.startswith(PUBLIC):
        for match in PUBLIC_NAMESPACE.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, "what is not public is namespace millrace::engine"
    code = COMMENTS_AND_TEXTS.sub(lambda m: "\n" * m.group().count("\n"), text)
    for number, line in enumerate(code.split("\n"), 1):
        if product and folder != "framework/threads" and THREADS.search(line):
            yield number, "threads are started in framework/threads alone"
        if SWALLOWS.search(line):
            yield number, "this call swallows errors: execute the texts BEGIN, COMMIT, ROLLBACK"


def build_faults(path, text):
    """Yields (line, what) for a CMakeLists.txt: the product never links what only tests may."""
    if path.startswith(("tests/", "framework/testing/", "coordinator/testing/")):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\bmillrace_(coordinator_)?testing\b", line):
            yield number, "testing/ is never linked into the product"


def violations(root):
    root = pathlib.Path(root)
    found = []
    for top in ("framework", "coordinator", "handlers", "tests"):
        for file in sorted((root / top).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.name == "CMakeLists.txt":
                faults = build_faults(path, file.read_text())
            elif file.suffix in (".h", ".cc", ".c", ".cpp"):
                faults = source_faults(path, file.read_text())
            else:
                continue
            found += [f"{path}:{line}: {what}" for line, what in faults]
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = violations(sys.argv[1])
    print("\n".join(found), file=sys.stderr) if found else print("the layers hold")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
