"""In a cluster 10,000 failures make one mail and one call of the webhook though the leader is killed twice, and one more each
when it is over, though the cluster is paused."""
import json
import time

from chaos.cluster import Cluster
from chaos.processes import wait_until
from chaos.scenario import main
from chaos.sinks import FAIL, alert, sinks_of, wait_arrived


def run(s):
    with sinks_of() as (mail, hook):
        in_a_cluster(s, mail, hook)


def in_a_cluster(s, mail, hook):
    sinks = (mail, hook)
    failures = 10_000
    cluster = Cluster(s, handlers={"fail": {**FAIL, "concurrency": 8}, "send_mail": mail.handler()})
    cluster.start_coordinator("c1")
    wait_until("c1 leads", lambda: cluster.leader() == "c1", 20, 0.05)
    s.millrace("config", "set", "alerts", json.dumps(
        {"failed": alert(hook, "failed", "1h"), "unowned": alert(hook, "unowned", "1h")}))
    cluster.start("w1", "--no-coordinate", "--load-balance", "0-31")
    wait_arrived(sinks, ("unowned",), "firing", 30)
    w2 = cluster.start("w2", "--no-coordinate")
    cluster.wait_owned()
    wait_arrived(sinks, ("unowned",), "over", 30)

    s.insert("fail", {}, failures)
    wait_until("tasks fail", s.failed, 20, 0.005)
    cluster.worker("c1").kill()
    wait_until("all have failed", lambda: s.failed() == failures, 60, 0.1)
    cluster.start_coordinator("c2")
    wait_until("c2 leads", lambda: cluster.leader() == "c2", 30, 0.05)
    wait_arrived(sinks, ("failed",), "firing", 30)
    cluster.worker("c2").kill()
    cluster.start_coordinator("c3")
    wait_until("c3 leads", lambda: cluster.leader() == "c3", 30, 0.05)
    time.sleep(7)  # for a message that should not be
    told = [len(sink.messages("failed", "firing")) for sink in sinks]
    s.check(f"{failures} failures, the leader killed twice: one mail and one call", told, told == [1, 1])
    call, letter = hook.messages("failed", "firing")[0][1], mail.messages("failed", "firing")[0][1]
    s.check("both have the count, and examples",
            f"{call['count']}; {letter['subject']}; {len(call['examples'])} examples",
            call["count"] == failures and str(failures) in letter["subject"] and call["examples"]
            and call["examples"][0] in letter["body"])
    s.millrace("cluster", "pause", "cluster")  # which holds all but messages of alerts
    wait_until("the worker has heard of the pause", lambda: cluster.statuses()["w2"].get("paused") == ["cluster"], 10)
    s.millrace("task", "cancel", "--all-matching", "--state", "failed", "--yes")
    wait_arrived(sinks, ("failed",), "over", 30)
    s.millrace("cluster", "resume", "cluster")
    time.sleep(3)
    told = [len(sink.messages("failed", state)) for sink in sinks for state in ("firing", "over")]
    s.check("and one more each when it is over, through a pause of the cluster", told, told == [1, 1, 1, 1])
    w2.terminate()


if __name__ == "__main__":
    main(run)
