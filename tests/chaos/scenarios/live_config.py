"""The configuration changed under load: in force on every worker within 2 s, whoever sets it; what is not valid changes
nothing, and is told of."""
import json
import time

from chaos.cluster import ROOT, Cluster
from chaos.load import NotedProgram
from chaos.processes import wait_until
from chaos.scenario import main

TAKES = 0.4  # seconds a task
NODE = f"{ROOT}/config/handlers"


def most_at_once(program, began, ended):
    """The most of its tasks that ran at one moment between two times of time.time()."""
    starts = [at for at, _ in program.starts() if began - TAKES <= at < ended]
    return max((sum(at - TAKES < other <= at for other in starts) for at in starts if at >= began), default=0)


def check_in_force(s, programs, what, concurrency):
    """Looks at one second, which begins 2 s after now."""
    began = time.time() + 2
    time.sleep(3.2)
    most = [most_at_once(program, began, began + 1.2) for program in programs]
    s.check(f"{what}: within 2 s each worker runs {concurrency} at once", most, most == [concurrency] * len(programs))


def refused(cluster):
    return {worker: status.get("refused", []) for worker, status in cluster.statuses().items()}


def check_refused(s, cluster, programs, document, words, concurrency):
    cluster.tree.set(NODE, document)
    wait_until("both workers tell that they refuse it", lambda: all(refused(cluster).values()), 10, 0.1)
    told = refused(cluster)
    shown = cluster.command("status")
    s.check(f"{document.decode()} is refused, with key and reason in status/<id> and in cluster status",
            told["w1"], all(word in text for word in words for text in [*told["w1"], *told["w2"], shown]))
    check_in_force(s, programs, "and changes nothing", concurrency)


def run(s):
    cluster = Cluster(s)
    names = ("w1", "w2")
    programs = [NotedProgram(s.folder, name, TAKES) for name in names]
    s.millrace("config", "set", "handlers.job.concurrency", 2)
    s.insert("job", {}, s.size(600, 1200))
    for name, program in zip(names, programs):
        cluster.start(name, handlers={"job": program.handler()})
    cluster.wait_owned()
    wait_until("both work", lambda: all(program.starts() for program in programs), 20)

    cluster.tree.set(NODE, json.dumps({"job": {"concurrency": 5}}).encode())
    check_in_force(s, programs, "set by a plain ZooKeeper client", 5)
    s.millrace("config", "set", "handlers.job.concurrency", 1)
    check_in_force(s, programs, "set by millrace config set", 1)

    said = s.ask("config", "set", "handlers.other", '{"uses": "exec", "options": {"program": "nowhere"}}', "--yes",
                 answer="")
    s.check("config set says which workers' handlers refuse their options", said.strip(),
            all(word in said for word in ("in force on 0 of 2", "w1 refuses it: handlers.other: ", "w2 refuses")))
    said = s.millrace("config", "set", "handlers.job.timeout", "7s")
    s.check("of another type it does not tell again", said.strip(), "in force on 2 of 2" in said)
    s.millrace("config", "unset", "handlers.other")

    check_refused(s, cluster, programs, b'{"job": {"concurrency": 3, "concurency": 7}}',
                  ("handlers.job.concurency", "unknown key"), 1)
    if s.full:
        check_refused(s, cluster, programs, b'{"job": {"concurrency": 0}}', ("handlers.job.concurrency", "from 1 to"), 1)
    said = s.ask("config", "set", "handlers.job.concurrency", "many", answer="")
    s.check("config set says what is wrong, and sets nothing", said.strip(), "handlers.job.concurrency" in said)
    if s.full:  # and back from what is no JSON at all
        check_refused(s, cluster, programs, b'{"job": ', ("config/handlers",), 1)
    history = json.loads(s.millrace("config", "history", "handlers", "--json"))["versions"]
    plain = [change for change in history if change["document"] == {"job": {"concurrency": 5}}]
    s.check("what the plain client set is in the history, with its time", plain,
            len(plain) == 1 and plain[0]["at"] and plain[0]["by"].startswith("not known"))
    first = next(change for change in history if change["document"].get("job") == {"concurrency": 2})
    s.millrace("config", "rollback", "handlers", first["version"])
    check_in_force(s, programs, f"set back to what {first['by']} set first, by millrace config rollback", 2)
    s.check("nothing is refused any more", refused(cluster), not any(refused(cluster).values()))


if __name__ == "__main__":
    main(run)
