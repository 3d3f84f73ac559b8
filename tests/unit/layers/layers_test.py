"""The tree keeps the layer rule, and the check that says so finds what is planted."""
import os
import pathlib
import tempfile
import unittest

import layers


class TheTree(unittest.TestCase):
    def test_keeps_the_layers(self):
        self.assertEqual([], layers.violations(os.environ["MILLRACE_SOURCE_DIR"]))


class TheCheck(unittest.TestCase):
    def faults(self, path, text):
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True)
            file.write_text(text)
            return layers.violations(root)

    def assert_found(self, path, text, what):
        found = self.faults(path, text)
        self.assertEqual(1, len(found), found)
        self.assertIn(what, found[0])
        self.assertTrue(found[0].startswith(path + ":2:"), found[0])

    def assert_fine(self, path, text):
        self.assertEqual([], self.faults(path, text))

    def test_finds_an_arrow_upwards(self):
        self.assert_found("framework/base/a.h", '\n#include "framework/task/task.h"', "may not include framework/task")
        self.assert_found("framework/worker/a.cc", '\n#include "coordinator/planner/plan.h"', "may not include")
        self.assert_found("framework/worker/a.cc", '\n#include "framework/store/mysql/store.h"', "may not include")
        self.assert_found("framework/worker/a.cc", '\n#include "framework/testing/clock.h"', "may not include")
        self.assert_found("coordinator/app/a.cc", '\n#include "framework/testing/clock.h"', "may not include")
        self.assert_found("coordinator/app/cli/a.cc", '\n#include "coordinator/app/command/shards.h"', "may not include")
        self.assert_found("coordinator/app/input/a.cc", '\n#include "coordinator/app/command/shards.h"', "may not include")
        self.assert_found("coordinator/app/a.cc", '\n#include "coordinator/testing/tree.h"', "may not include")
        self.assert_found("coordinator/app/task/a.cc", '\n#include "coordinator/app/submit/a.h"', "may not include")
        self.assert_found("coordinator/app/task/a.cc", '\n#include "coordinator/testing/tree.h"', "may not include")
        self.assert_found("framework/task/a.cc", '\n#include "tests/support/a.h"', "never includes tests")

    def test_lets_arrows_downwards_pass(self):
        self.assert_fine("framework/worker/a.cc", '#include "framework/task/task.h"\n#include <vector>')
        self.assert_fine("coordinator/app/a.cc", '#include "framework/store/mysql/store.h"')
        self.assert_fine("handlers/noop/a.cc", '#include <millrace/handler.h>\n#include "handlers/noop/b.h"')
        self.assert_fine("handlers/noop/a.cc", '#include "handlers/shared.h"')

    def test_finds_a_native_header_outside_its_home(self):
        self.assert_found("framework/worker/a.cc", "\n#include <mysql_driver.h>", "the MySQL connector")
        self.assert_found("framework/store/mysql/a.cc", "\n#include <sqlite3.h>", "SQLite")
        self.assert_found("coordinator/app/a.cc", "\n#include <zookeeper/zookeeper.h>", "the ZooKeeper client")
        self.assert_found("framework/store/a.h", "\n#include <boost/outcome/try.hpp>", "Boost.Outcome")
        self.assert_fine("framework/store/mysql/a.cc", "#include <cppconn/statement.h>")

    def test_finds_a_handler_that_looks_inside(self):
        self.assert_found("handlers/noop/a.cc", '\n#include "framework/task/task.h"', "may not include")
        self.assert_found("handlers/noop/a.cc", '\n#include "handlers/exec/a.h"', "may not include")
        self.assert_found("handlers/shared.h", '\n#include "handlers/exec/a.h"', "may not include")

    def test_finds_a_public_header_that_is_not_std_only(self):
        self.assert_found("framework/include/millrace/a.h", "\n#include <fmt/core.h>", "standard library alone")
        self.assert_found("framework/include/millrace/a.h", '\n#include "framework/base/result.h"', "may not include")

    def test_finds_what_is_not_public_in_the_public_namespace(self):
        self.assert_found("framework/worker/a.h", "\nnamespace millrace {", "namespace millrace::engine")
        self.assert_found("coordinator/app/a.h", "\nnamespace millrace::app {", "namespace millrace::engine")
        self.assert_fine("framework/worker/a.h", "namespace millrace::engine {")
        self.assert_fine("framework/store/mysql/a.h", "namespace millrace::engine::mysql {")
        self.assert_fine("framework/include/millrace/a.h", "namespace millrace {")

    def test_finds_a_thread_started_elsewhere(self):
        self.assert_found("framework/worker/a.cc", "\nstd::jthread t(f);", "framework/threads alone")
        self.assert_found("handlers/noop/a.cc", "\nstd::thread t(f);", "framework/threads alone")
        self.assert_fine("framework/threads/a.cc", "std::jthread t(f);")
        self.assert_fine("framework/worker/a.cc", "// std::thread is not for here\nstd::thread::id i;")
        self.assert_fine("tests/unit/base/a.cc", "std::thread t(f);")

    def test_finds_calls_that_swallow_errors(self):
        self.assert_found("framework/store/mysql/a.cc", "\nconnection->commit();", "swallows errors")
        self.assert_found("tests/contract/a.cc", "\nconnection.setAutoCommit(false);", "swallows errors")
        self.assert_fine("framework/worker/a.cc", 'transaction.Commit(); log("c.commit() failed");')
        self.assert_found("framework/store/mysql/a.cc", "\nconnection->commit( );", "swallows errors")
        self.assert_fine("framework/http/a.cc", "self->buffer_.commit(bytes);")

    def test_finds_testing_in_the_product(self):
        self.assert_found("framework/worker/CMakeLists.txt", "\nLINKS millrace_testing", "never linked")
        self.assert_fine("tests/unit/a/CMakeLists.txt", "LINKS millrace_testing")

    def test_finds_a_folder_without_a_rule(self):
        found = self.faults("framework/common/a.h", "")
        self.assertEqual(1, len(found))
        self.assertIn("has no line", found[0])


if __name__ == "__main__":
    unittest.main()
