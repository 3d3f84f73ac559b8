#include <gmock/gmock.h>
#include <millrace/json.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "framework/handler_kit/local_run.h"
#include "tests/unit/handlers/shipped_handler.h"

namespace millrace::engine {
namespace {

using testing::HasSubstr;

class ExecTest : public ShippedHandlerTest {
 protected:
  static std::string Shell(const std::string& script, const std::string& more = "") {
    return R"({"program":"/bin/sh","args":["-c",)" + JsonQuote(script) + "]" + more + "}";
  }
  Outcome RunScript(const std::string& script, const std::string& more = "",
                    const std::string& params = "{}") {
    return Run("exec", Shell(script, more), params);
  }
  // Stops the script once it has made the file $ready.
  Outcome RunAndStop(const std::string& script) {
    const std::string ready = folder_ + "/ready";
    std::thread stopper([&] {
      while (!std::filesystem::exists(ready)) std::this_thread::yield();
      context_.stop = true;
    });
    const Outcome outcome = RunScript("ready=" + ready + "; " + script);
    stopper.join();
    context_.stop = false;
    std::filesystem::remove(ready);
    return outcome;
  }
  static bool EndsSoon(pid_t process) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (std::chrono::steady_clock::now() < end) {
      std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
      std::string id, name, state;
      if (!(stat >> id >> name >> state) || state == "Z" || state == "X") return true;
      std::this_thread::yield();
    }
    return false;
  }
};

// While it lives, this process gets all that its descendants leave behind: so does a worker that is process 1
// of a container.
class ProcessOne {
 public:
  ProcessOne() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~ProcessOne() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  ProcessOne(const ProcessOne&) = delete;
  ProcessOne& operator=(const ProcessOne&) = delete;
};

TEST_F(ExecTest, TheLastLineOfTheOutputIsTheResult) {
  const Outcome outcome = RunScript("echo one; echo two; echo");
  EXPECT_EQ(outcome.kind, OutcomeKind::Done);
  EXPECT_EQ(outcome.text, "two");
}

TEST_F(ExecTest, TheTaskArrivesAsJson) {
  const Outcome outcome = RunScript("cat", "", R"j({"to":"Zoë \" $(id)"})j");
  EXPECT_THAT(outcome.text, HasSubstr(R"j({"name":"main/tasks/1","handler":"exec","params":{"to":)j"));
  EXPECT_THAT(outcome.text, HasSubstr(R"j({"to":"Zoë \" $(id)"},"attempt":1)j"));
  EXPECT_THAT(outcome.text, HasSubstr("\"idempotency_key\":\"main/tasks/1"));
}

TEST_F(ExecTest, ExitCodesBecomeOutcomes) {
  EXPECT_EQ(RunScript("exit 75").kind, OutcomeKind::Retry);
  const Outcome three = RunScript("echo no such image >&2; exit 3");
  EXPECT_EQ(three.kind, OutcomeKind::Retry);
  EXPECT_EQ(three.error_class, "exit_3");
  EXPECT_EQ(three.text, "the program ended with code 3: no such image");
  EXPECT_EQ(RunScript("exit 3", R"(,"fail_on":[2,3])").kind, OutcomeKind::Fail);
}

TEST_F(ExecTest, AnEndThatOthersHaveTakenIsNoSuccess) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(RunScript("exit 3").error_class, "end_unknown");
  ::signal(SIGCHLD, before);
}

TEST_F(ExecTest, OfALongStandardErrorTheEndIsTold) {
  const Outcome outcome = RunScript("yes at Some.frame | head -c 9000 >&2; echo the reason >&2; exit 3");
  EXPECT_THAT(outcome.text, testing::StartsWith("the program ended with code 3: "));
  EXPECT_THAT(outcome.text, testing::EndsWith("the reason"));
}

TEST_F(ExecTest, ACodeBeyond128IsNoSignal) {
  const Outcome last = RunScript("exit 255");
  EXPECT_EQ(last.error_class, "exit_255");
  EXPECT_EQ(last.text, "the program ended with code 255");
  EXPECT_EQ(RunScript("exit 143", R"(,"fail_on":[143])").kind, OutcomeKind::Fail);
  for (const char* signal : {"SEGV", "TERM", "KILL", "USR1"}) {
    const Outcome killed = RunScript("kill -" + std::string(signal) + " $$");
    EXPECT_EQ(killed.error_class, "killed") << signal;
    EXPECT_THAT(killed.text, HasSubstr("by signal ")) << signal;
  }
  EXPECT_EQ(RunScript("kill -SEGV $$").text, "the program was killed by signal 11");
}

TEST_F(ExecTest, AProgramMayStateItsOutcome) {
  const Outcome fail = RunScript(R"(echo '{"outcome":"fail","text":"gone","class":"gone"}')");
  EXPECT_EQ(fail.kind, OutcomeKind::Fail);
  EXPECT_EQ(fail.text, "gone");
  EXPECT_EQ(RunScript(R"(echo '{"outcome":"snooze","delay_seconds":1.5}')").delay,
            std::chrono::milliseconds(1500));
  EXPECT_EQ(RunScript(R"(echo '{"outcome":"retry","delay_seconds":2}')").delay, std::chrono::seconds(2));
  EXPECT_EQ(RunScript(R"(echo '{"outcome":"skip"}')").kind, OutcomeKind::Skip);
  EXPECT_EQ(RunScript(R"(echo '{"outcome":"maybe"}')").error_class, "bad_outcome");
  EXPECT_EQ(RunScript(R"(echo '{"rows":3}')").text, R"({"rows":3})");
}

// What a shell makes of a text that it puts between quotes: a failure may not pass for success.
TEST_F(ExecTest, AnOutcomeThatCannotBeReadIsNoSuccess) {
  for (const char* broken :
       {R"x({"outcome":"fail","text":"no such "file""})x", R"x({"outcome":"fail","text":"in C:\dir"})x",
        "{\"outcome\":\"fail\",\"text\":\"a\ttab\"}", R"x({"outcome":"fail","text":"\ud83d"})x",
        "{\"outcome\":\"fail\",\"text\":\"line 1\nline 2\"}", "{\"outcome\":\"fail\",\"text\":\"cut",
        "{\"outcome\":\"fail\",\"text\":\"500\n{\"message\":\"boom\"}\"}", "{\"outcome\":\"fail\",\n}",
        "{\"outcome\":\"fail\",\"text\":\"500\n{\"message\":\"boom\"}\n\"}",
        "{\"outcome\":\"fail\",\"text\":\"500\n[1]\n\"}",
        "{\"outcome\":\"fail\",\"text\":\"a \"quote\"\",\"items\":[\n{\"line\":3}\n]}",
        "{\n\"items\":[\n{\"line\":3}\n],\n\"text\":\"a \"quote\"\",\"outcome\":\"fail\"}",
        "{\"outcome\":\"fail\",\"text\":\"Unexpected token }\n  at {\"}",
        R"x({"outcome":"fail","text":"a "}" b"})x", R"x({'outcome': 'fail'})x"}) {
    const Outcome outcome = RunScript("cat <<'EOF'\n" + std::string(broken) + "\nEOF");
    EXPECT_EQ(outcome.kind, OutcomeKind::Retry) << broken;
    EXPECT_EQ(outcome.error_class, "bad_outcome") << broken;
    EXPECT_THAT(outcome.text, HasSubstr("not valid JSON at line ")) << broken;
  }
}

TEST_F(ExecTest, AnOutcomeMayStandOnSeveralLines) {
  const Outcome outcome = RunScript(
      "echo '{\"event\":\"begun\"}'; echo '{\n  \"outcome\": \"fail\",\n  \"class\": \"gone\",\n"
      "  \"seen\": [\n    {\n      \"outcome\": 1\n    }\n  ]\n}'");
  EXPECT_EQ(outcome.kind, OutcomeKind::Fail);
  EXPECT_EQ(outcome.error_class, "gone");
}

TEST_F(ExecTest, AnObjectWithinAnOutcomeIsNotItsEnd) {
  for (const char* nested :
       {"{\n  \"outcome\": \"fail\",\n  \"items\": [\n    {\"line\": 3}\n  ]\n}",
        "{\"outcome\":\"fail\",\"errors\":[\n{\"line\":3}\n]}",
        "{\"outcome\":\"fail\",\"errors\":[\n{\"line\":3},\n{\"outcome\":\"done\"}\n]}\n"}) {
    const Outcome outcome = RunScript("cat <<'EOF'\n" + std::string(nested) + "\nEOF");
    EXPECT_EQ(outcome.kind, OutcomeKind::Fail) << nested << ": " << outcome.text;
  }
}

// Its effects would be repeated.
TEST_F(ExecTest, ASuccessIsNotRunAgainForWhatStandsBeforeItsEnd) {
  for (const char* output :
       {"{\n  \"step\": \"load\", \"outcome\": \"3 of 3\"\n}\ncopied set {a, b}", "{outcome=OK, id=7}",
        "{\"outcome\":\"of a step\"}\n{\"rows\":3}", "{'step': 'load', 'outcome': 'ok'}\n{'rows': 3}",
        "{\n  a\n}\n{\"step\":\"load\",\"outcome\":\"3 of 3\"}\ncopied set {a, b}",
        "[{\"outcome\":\"ok\"},\n {\"outcome\":\"ok\"}]\ncopied set {a, b}",
        "[\n  {\"outcome\":\"ok\"}\n]"}) {
    const Outcome outcome = RunScript("cat <<'EOF'\n" + std::string(output) + "\nEOF");
    EXPECT_EQ(outcome.kind, OutcomeKind::Done) << output << ": " << outcome.text;
  }
}

TEST_F(ExecTest, ALongOutcomeOverSeveralLinesIsNoSuccess) {
  const std::string begin = "echo '{\"event\":\"begun\"}'; printf '{\\n  \"outcome\": \"fail\",\\n  ";
  const std::string rows = "yes '    12345,' | head -c 300000; ";
  EXPECT_EQ(RunScript(begin + "\"rows\": [\\n'; " + rows + "printf '    1\\n  ]\\n}\\n'").error_class,
            "bad_outcome");
  EXPECT_EQ(RunScript("printf '{\\n  \"rows\": [\\n'; " + rows +
                      "printf '    1\\n  ],\\n  \"outcome\": \"fail\"\\n}\\n'")
                .error_class,
            "bad_outcome");
  EXPECT_EQ(
      RunScript(begin + "\"text\": \"'; head -c 300000 /dev/zero | tr '\\0' x; printf '\"\\n}\\n'").kind,
      OutcomeKind::Fail);
  EXPECT_EQ(RunScript("printf '{\\n  \"rows\": [\\n'; " + rows + "printf '    1\\n  ]\\n}\\n'").kind,
            OutcomeKind::Done);
}

TEST_F(ExecTest, WhatBeginsManyObjectsHoldsNobodyUp) {
  for (const char* line : {"{", "{\"a\":", "{\"outcome\":", "{a}", "{\"a\":[{},\n{}"}) {
    const auto before = std::chrono::steady_clock::now();
    RunScript("yes '" + std::string(line) + "' | head -c 65000; echo; echo '}'");
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(2)) << line;
  }
}

TEST_F(ExecTest, WhatStatesNoOutcomeIsAResult) {
  for (const char* result : {"{broken}", "{\"rows\":[\n]}", "outcome {a}", "}"}) {
    const Outcome outcome =
        RunScript("echo '{\"outcome\":\"of a step\"}'; cat <<'EOF'\n" + std::string(result) + "\nEOF");
    EXPECT_EQ(outcome.kind, OutcomeKind::Done) << result << ": " << outcome.text;
  }
}

TEST_F(ExecTest, AnOutcomeOfAnyLengthIsTaken) {
  const std::string fill = "head -c 300000 /dev/zero | tr '\\0' x; ";
  const Outcome outcome = RunScript("printf '{\"outcome\":\"fail\",\"text\":\"'; " + fill + "echo '\"}'");
  EXPECT_EQ(outcome.kind, OutcomeKind::Fail);
  EXPECT_THAT(outcome.text, testing::StartsWith("xxx"));
  EXPECT_EQ(RunScript("printf '{\"rows\":\"'; " + fill + "echo '\"}'").kind, OutcomeKind::Done);
  EXPECT_EQ(
      RunScript("printf '{\"outcome\":\"fail\",\"text\":\"'; " + fill + "echo '\"quoted\"\"}'").error_class,
      "bad_outcome");
}

TEST_F(ExecTest, InputThatIsNotReadIsNoError) {
  EXPECT_EQ(RunScript("true", "", "{\"a\":\"" + std::string(60'000, 'x') + "\"}").kind, OutcomeKind::Done);
}

// Eight writers, so that the pipe is never found empty.
TEST_F(ExecTest, AProgramThatKeepsWritingIsStopped) {
  context_.stop = true;
  const Outcome outcome = RunScript("for i in 1 2 3 4 5 6 7 8; do yes & done; yes >&2");
  EXPECT_EQ(outcome.error_class, "stopped");
}

TEST_F(ExecTest, AChildThatLeftTheGroupAndKeepsWritingHoldsNobodyUp) {
  const Outcome outcome = RunScript("for i in 1 2 3 4 5 6 7 8; do setsid yes & done; sleep 0.1; exit 3");
  EXPECT_EQ(outcome.error_class, "exit_3");
}

TEST_F(ExecTest, AFloodOfOutputIsBounded) {
  const Outcome outcome = RunScript("head -c 20000000 /dev/zero | tr '\\\\0' x; echo; echo end");
  EXPECT_EQ(outcome.text, "end");
}

TEST_F(ExecTest, AWorkerWithoutDescriptorsIsNoFaultOfTheProgram) {
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::syscall(SYS_close_range, 3U, ~0U, 0U);
    const rlimit few{10, 10};  // so that the pipes alone find room
    ::setrlimit(RLIMIT_NOFILE, &few);
    const Outcome outcome = RunScript("exit 3", R"(,"fail_on":[3,127])");
    ::_exit(outcome.error_class == "exit_75" && outcome.text.ends_with("no descriptors left for the program")
                ? 0
                : 1);
  }
  int status = -1;
  ::waitpid(worker, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(ExecTest, AStopKillsTheWholeGroup) {
  const std::string pids = folder_ + "/pids";
  std::thread stopper([&] {
    std::string line;
    while (!std::getline(std::ifstream(pids) >> std::ws, line) || line.find(' ') == std::string::npos) {
      std::this_thread::yield();
    }
    context_.stop = true;
  });
  const auto before = std::chrono::steady_clock::now();
  const Outcome outcome = RunScript("trap '' TERM; sleep 60 & echo $$ $! > " + pids + "; sleep 60; sleep 60",
                                    R"(,"grace_ms":100)");
  stopper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_EQ(outcome.error_class, "stopped");
  pid_t shell = 0;
  pid_t sleeper = 0;
  std::ifstream(pids) >> shell >> sleeper;
  EXPECT_TRUE(EndsSoon(shell));
  EXPECT_TRUE(EndsSoon(sleeper));
}

TEST_F(ExecTest, AStopLeavesNoDeadToTheWorker) {
  const ProcessOne worker;
  EXPECT_EQ(RunAndStop("sleep 60 & touch $ready; sleep 60").error_class, "stopped");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "the worker has got a child of the program's";
}

// In a program that runs for days they would be many.
TEST_F(ExecTest, TheDeadAreReapedWhileTheProgramRuns) {
  const ProcessOne worker;
  const Outcome outcome = RunScript(
      "cd " + folder_ +
      "; (sh -c 'echo $$ > new; mv new orphan' &); until [ -e orphan ]; do sleep 0.01; done; "
      "dead=/proc/$(cat orphan); i=0; while [ -e $dead ] && [ $i -lt 500 ]; do sleep 0.01; i=$((i+1)); done; "
      "[ -e $dead ] || echo reaped");
  EXPECT_EQ(outcome.text, "reaped");
}

TEST_F(ExecTest, AProgramThatIsStoppedMayStillFinish) {
  const auto stopped = [&](const std::string& last_words) {
    return RunAndStop("trap '" + last_words + "; exit 0' TERM; touch $ready; while :; do sleep 0.01; done");
  };
  EXPECT_EQ(stopped("echo {\\\"outcome\\\":\\\"done\\\"}").kind, OutcomeKind::Done);
  EXPECT_EQ(stopped("echo {\\\"outcome\\\":\\\"fail\\\",\\\"class\\\":\\\"gone\\\"}").error_class, "gone");
  EXPECT_EQ(stopped("echo {\\\"outcome\\\":\\\"done\\\"").error_class, "bad_outcome");
  EXPECT_EQ(stopped("echo finished").error_class, "stopped") << "it does not say of what";
}

// The stop comes in the moment in which the program ends.
TEST_F(ExecTest, AProgramThatHasEndedByItselfWasNotStopped) {
  class Late final : public RecordingContext {
   public:
    explicit Late(std::string folder) : folder_(std::move(folder)) {}
    bool ShouldStop() const override {
      pid_t keeper = 0;
      while (!(std::ifstream(folder_ + "/keeper") >> keeper)) std::this_thread::yield();
      std::ofstream go(folder_ + "/go");
      siginfo_t ended{};
      EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(keeper), &ended, WEXITED | WNOWAIT), 0);
      return true;
    }

   private:
    const std::string folder_;
  };
  Late late(folder_);
  const auto handler = Open("exec", Shell("cd " + folder_ + "; echo $PPID > new; mv new keeper; " +
                                          "until [ -e go ]; do sleep 0.01; done; echo all"));
  const std::vector<Task> tasks = {SomeTask("exec", "{}")};
  const Outcome outcome = (*handler)->Run("main", PointersTo(tasks), late).at(0);
  EXPECT_EQ(outcome.kind, OutcomeKind::Done) << outcome.text;
  EXPECT_EQ(outcome.text, "all");
}

TEST_F(ExecTest, AProgramThatIgnoresItsTimeLimitCostsNoThread) {
  LocalRunOptions run;
  run.type = "exec";
  run.config.timeout = std::chrono::seconds(1);
  run.config.options = Shell("trap '' TERM; while :; do sleep 0.1; done", R"(,"grace_ms":5000)");
  const auto report = RunLocally(*plugins_, run, SystemClock());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_THAT(report->ends.at(0).end.text, HasSubstr("the program was stopped before it had finished"))
      << "a worker would have given the call up, with its thread";
}

TEST_F(ExecTest, WhatAProgramLeavesBehindIsKilledAndNotWaitedFor) {
  const auto before = std::chrono::steady_clock::now();
  const Outcome outcome = RunScript("sleep 60 & echo $!");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  EXPECT_TRUE(EndsSoon(std::stoi(outcome.text)));
}

TEST_F(ExecTest, NoDescriptorOfTheWorkerLeaksIntoTheProgram) {
  const int leaky = ::dup(0);  // without close-on-exec
  const char* script =
      "i=3; while [ $i -lt 99 ]; do [ -e /proc/$$/fd/$i ] && printf '%s ' $i; i=$((i+1)); done; echo end";
  EXPECT_EQ(RunScript(script).text, "end");
  ::close(leaky);
}

TEST_F(ExecTest, TheEnvironmentIsWhatTheOptionsName) {
  ::setenv("MILLRACE_PASSWORD_FILE", "/secret/place", 1);
  const Outcome outcome =
      Run("exec",
          Shell("echo $MILLRACE_PASSWORD_FILE-$COLOUR-$TOKEN",
                R"(,"environment":{"COLOUR":"red"},"secret_environment":{"TOKEN":"token"})"),
          "{}", {{"token", "t0"}});
  EXPECT_EQ(outcome.text, "-red-t0");
}

// A program that looks for the first of two would not find what the options say.
TEST_F(ExecTest, WhatTheOptionsNameGoesOverTheWorkersOwn) {
  ::setenv("TZ", "UTC", 1);
  const Outcome outcome = Run(
      "exec",
      Shell("cat /proc/$$/environ | tr '\\0' '\\n' | grep -e ^TZ= -e ^LANG= | xargs",
            R"(,"environment":{"TZ":"Europe/Berlin","LANG":"C"},"secret_environment":{"LANG":"language"})"),
      "{}", {{"language", "de"}});
  EXPECT_EQ(outcome.text, "LANG=de TZ=Europe/Berlin");
  ::unsetenv("TZ");
}

TEST_F(ExecTest, OptionsThatCannotWorkAreRefusedAtOnce) {
  EXPECT_THAT(Open("exec", "{}").error().message, HasSubstr("'program' is missing"));
  EXPECT_THAT(Open("exec", Shell("true", R"(,"arguments":["4"])")).error().message,
              HasSubstr("'arguments' is none of its options, which are program, args, directory"));
  EXPECT_THAT(Open("exec", R"({"program":"sh"})").error().message, HasSubstr("absolute path"));
  EXPECT_THAT(Open("exec", R"({"program":"/no/such"})").error().message, HasSubstr("'/no/such'"));
  for (const char* directory : {"/no/such", "no/such", "/bin/sh"}) {
    const auto opened = Open("exec", Shell("true", R"(,"directory":")" + std::string(directory) + "\""));
    EXPECT_THAT(opened.error().message, HasSubstr("'directory' names '" + std::string(directory) +
                                                  "', which is missing or can't be entered"));
  }
  EXPECT_THAT(Open("exec", Shell("true", R"(,"secret_environment":{"A":"b"})")).error().message,
              HasSubstr("the secret 'b' is missing"));
  EXPECT_THAT(Open("exec", Shell("true", R"(,"fail_on":[256])")).error().message,
              HasSubstr("'fail_on' is of exit codes, 1 to 255, and has 256"));
  EXPECT_THAT(Open("exec", Shell("true", R"(,"grace_ms":-1)")).error().message,
              HasSubstr("'grace_ms' must be 0 to 3600000, is -1"));
}

TEST_F(ExecTest, WhatCannotBeStartedIsNamedAndSoIsTheReason) {
  const std::string plain = folder_ + "/plain";
  std::ofstream(plain) << "echo hello\n";
  std::filesystem::permissions(plain, std::filesystem::perms::owner_all);
  const Outcome script = Run("exec", R"({"program":")" + plain + "\"}", "{}");
  EXPECT_EQ(script.error_class, "exit_127");
  EXPECT_EQ(script.text, "the program ended with code 127: the program '" + plain +
                             "' can't be started: Exec format error; begin it with a #! line");

  const std::string directory = folder_ + "/directory";
  std::filesystem::create_directory(directory);
  const auto handler = Open("exec", Shell("true", R"(,"directory":")" + directory + "\""));
  std::filesystem::remove(directory);
  const std::vector<Task> tasks = {SomeTask("exec", "{}")};
  const Outcome gone = (*handler)->Run("main", PointersTo(tasks), context_).at(0);
  EXPECT_EQ(gone.error_class, "exit_127");
  EXPECT_EQ(gone.text, "the program ended with code 127: the directory '" + directory +
                           "' can't be entered: No such file or directory");
}

// A real worker's death: a process that runs a program is killed, and the program's whole group goes with it.
TEST_F(ExecTest, ProgramsDieWithTheWorker) {
  const ProcessOne parent;
  const std::string pids = folder_ + "/pids";
  const pid_t worker = ::fork();
  if (worker == 0) {
    RunScript("sleep 60 & echo $$ $! > " + pids + ".new; mv " + pids + ".new " + pids + "; sleep 60; true");
    ::_exit(0);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!std::filesystem::exists(pids) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  pid_t shell = 0;
  pid_t sleeper = 0;
  std::ifstream(pids) >> shell >> sleeper;
  ::kill(worker, SIGKILL);
  ::waitpid(worker, nullptr, 0);
  ASSERT_GT(sleeper, 0);
  EXPECT_TRUE(EndsSoon(shell));
  EXPECT_TRUE(EndsSoon(sleeper));
  int left_behind = 0;
  while (::waitpid(-1, nullptr, 0) > 0) ++left_behind;
  EXPECT_EQ(left_behind, 1) << "more than the keeper";
}

}  // namespace
}  // namespace millrace::engine
