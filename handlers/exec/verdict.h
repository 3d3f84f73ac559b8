// What a program's end means for its task. Pure.
#pragma once

#include <millrace/handler.h>

#include <set>

#include "process.h"

namespace exec_handler {

// Exit 0 is done, with the last line of the output as its result; a JSON object at its end, of one line or
// several, that has a member `outcome` says it itself:
// {"outcome":"done|retry|fail|snooze|skip","text","class","delay_seconds"}. One that can't be read is retry:
// where JSON objects and lists that fill whole lines are left out, a line begins with `{`, in it or after it
// stands a quoted `outcome`, and the output ends with `}`, or that line is its last. A last line that begins
// with `{`, and closes no more braces than it opens, is judged alone.
// A program that was told to stop and ends so without a statement may have left its work undone: retry.
// 75 is retry, a code of `fail_on` is fail, every other end is retry with the tail of standard error.
millrace::Outcome Judge(const ProgramEnd& end, const std::set<int>& fail_on);

}  // namespace exec_handler
