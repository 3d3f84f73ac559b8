"""scripts/cluster: a whole cluster comes up, is hurt, heals, and leaves nothing behind."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["MILLRACE_SOURCE_DIR"]) / "scripts" / "cluster"


class ClusterTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="millrace-cluster-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.addCleanup(self.run_script, "down")

    def run_script(self, *words):
        return subprocess.run([SCRIPT, *words], env={**os.environ, "MILLRACE_CLUSTER_DIR": self.home},
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)

    def expect(self, code, text, *words):
        done = self.run_script(*words)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertIn(text, done.stdout)
        return done.stdout

    def processes(self):
        """The ids of all processes that were started for this cluster, by the folder that each is given."""
        found = set()
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                told = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            except OSError:
                continue
            if self.home.encode() + b"/" in told:
                found.add(int(folder.name))
        return found

    def test_a_cluster_comes_up_is_hurt_heals_and_goes(self):
        self.expect(3, "nothing was started", "status")
        told = self.expect(0, "are up", "up", "--zookeepers", "3", "--workers", "2")
        self.assertEqual(len(re.search(r"export MILLRACE_ZK=(.*)", told)[1].split(",")), 3)
        everything = self.processes()
        self.assertEqual(len(everything), 6)  # MariaDB, three ZooKeepers, two workers

        self.expect(0, "up already", "up", "--workers", "2")
        self.expect(4, "made with --zookeepers 3", "up", "--zookeepers", "1")
        self.assertEqual(self.processes(), everything)

        self.expect(0, "", "kill", "zookeeper2")
        self.expect(3, "zookeeper2 does not run", "status")
        self.expect(3, "there is no 'zookeeper2' that runs", "pause", "zookeeper2")
        self.expect(0, "are up", "up")
        self.assertEqual(len(self.processes()), 6)
        self.expect(0, "", "stop", "w2")
        self.assertEqual(len(self.processes()), 5)
        self.expect(0, "w2 runs", "add")
        self.expect(4, "w2 runs already", "add", "w2")
        self.expect(0, "", "stop", "w1", "w2")
        self.assertEqual(len(self.processes()), 4)
        self.expect(0, "w2 runs", "add", "w2")
        self.expect(0, "w1 runs", "add")
        told = self.expect(0, "millrace config set shards", "database", "second")
        self.assertRegex(told, r'"main":\{"url":"mysql://[^"]*/millrace"\},"second":\{"url":"mysql://[^"]*_second"\}')
        self.assertEqual(self.expect(0, "", "database", "second"), told)
        self.expect(0, "", "kill", "w1")
        self.expect(0, "w1 runs", "add")
        self.expect(0, "w3 runs", "add")
        self.expect(0, "slices go to other workers", "drain", "w2")
        self.expect(0, "", "pause", "zookeeper3")
        self.assertRegex(self.expect(0, ", paused", "status"), "w2 +draining")
        self.expect(0, "", "resume", "zookeeper3")

        self.expect(0, "", "pause", "w2")
        self.expect(0, "", "pause", "zookeeper1")
        self.expect(0, "Stopped", "stop")
        self.assertEqual(self.processes(), set())
        self.expect(0, "Nothing was running", "down")

    def test_what_it_does_not_understand_changes_nothing(self):
        for words in ([], ["up", "--zookeepers", "2"], ["up", "--workers", "-1"], ["up", "w1"], ["kill"], ["fly"], ["add", "w1", "w2"],
                      ["database"]):
            self.expect(2, "scripts/cluster up", *words)
        self.expect(2, "no name for a worker", "add", "one")
        self.expect(2, "no name for a database", "database", "a-b")
        self.expect(3, "no cluster that runs", "add", "w1")
        self.assertEqual(self.processes(), set())


if __name__ == "__main__":
    unittest.main()
