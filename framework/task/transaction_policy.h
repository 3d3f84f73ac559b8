// What the outcomes of a call and the state of its transaction mean together: the one rule by which worker
// and kit commit, roll back and run again. Pure.
//
// SQL takes effect with Done alone. A task in doubt (parts of its SQL may have taken effect) is never run
// again by itself; every other task of a call whose SQL is certainly rolled back may be, uncounted.
#pragma once

#include <vector>

#include "framework/task/task.h"

namespace millrace::engine {

enum class TransactionState {
  Idle,          // nothing begun
  Open,          // the handler's SQL is under way
  NoConnection,  // none could be had: nothing was sent
  Transient,  // a lock wait or deadlock: only the rollback is left; the handler may be run again, uncounted
  Poisoned,   // any other SQL error: only the rollback is left
  Lost,       // the connection is gone and nothing was committed
  Escaped,    // it was, or may have been, ended behind our back: parts of it may have taken effect
};

enum class CommitVerdict {
  Committed,
  Refused,    // an attempt was no longer ours: rolled back
  Transient,  // a lock wait or deadlock: rolled back
  Escaped,    // the transaction had been ended behind our back: parts may have taken effect; do not run again
  Broken,  // the database refuses it: the settle's data, a constraint, its time: rolled back, would be again
  Unavailable,  // rolled back, or never arrived: nothing was committed
  Unknown,      // the connection was lost under COMMIT: read back with TaskStore::StillRunning
};

// Whose SQL a call of several tasks sent. A call of one needs no such word.
enum class CallStyle {
  Unsaid,    // the plugin did not tell; it may be older than the question
  Together,  // it was sent for the tasks that are done, and for them alone
  Each,      // task after task, each with a savepoint of its own
};

// One task of a call, as the handler and its SQL left it. What stands behind `outcome` is known of a call of
// the style Each alone.
struct TaskEnd {
  OutcomeKind outcome = OutcomeKind::Done;
  bool sent = false;    // SQL was sent for it
  bool kept = false;    // which is in the transaction still
  bool failed = false;  // or failed, and was undone
};

struct CallEnd {
  CallStyle style = CallStyle::Unsaid;
  TransactionState state = TransactionState::Idle;
  bool threw = false;     // it failed as a whole: no outcome is one task's own
  bool last_run = false;  // it has been run again often enough
  std::vector<TaskEnd> tasks;
  bool overran = false;  // it came back after its time limit, and tasks failed by that
};

enum class Ending {
  AsSaid,     // by its outcome
  Failed,     // a failed attempt: it says that it is done, and its SQL failed
  GivenBack,  // uncounted
  InDoubt,    // parts may have taken effect: to the failed pool, for a person
};

enum class Next {
  Settle,    // every task ends by `endings`
  RunAgain,  // the whole call, uncounted
  Halve,     // the tasks again in two calls, uncounted, so that what fails them all stands alone in the end
  OneByOne,  // the tasks again, each alone, uncounted
};

struct Decision {
  bool commit = false;  // with the settlements of `endings`; otherwise what is open is rolled back
  Next next = Next::Settle;
  std::vector<Ending> endings;  // one a task, for Next::Settle
};

// At the end of a call.
Decision Decide(const CallEnd& call);
// Once that commit has failed, for every verdict but Committed and Unknown; the call's state becomes what it
// left (Open, where an attempt was refused).
Decision AfterCommit(CallEnd& call, CommitVerdict verdict);

}  // namespace millrace::engine
