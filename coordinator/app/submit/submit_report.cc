#include "coordinator/app/submit/submit_report.h"

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kProblemsShown = 20;

// The row of the input, for people.
std::string Where(const SubmitAsked& asked, std::size_t line) {
  if (!asked.rows) return "";
  return (!asked.file.empty() ? asked.file + ":" : "row ") + std::to_string(line) + ": ";
}

void PrintOthers(const SubmitAsked& asked, const std::string& shard, const SubmitTotals& totals) {
  for (std::size_t i = 0; i < totals.others.size() && i < kProblemsShown; ++i) {
    const OtherParams& other = totals.others[i];
    PrintError(Where(asked, other.line) + "the key '" + Escape(other.key) + "' is that of " + shard + "/" +
               other.holder + ", which has other params: this one was not added");
  }
  if (totals.differing > kProblemsShown) {
    PrintError("… and " + WithCommas(totals.differing - kProblemsShown) +
               " more with other params; --json lists up to 1,000");
  }
  if (totals.differing > 0) {
    PrintNote(asked.rows ? "are they other tasks whose keys happen to be the same? --key-prefix TEXT "
                           "tells the keys of one file from those of another"
                         : "is it another task? give it a key of its own");
  }
}

void PrintProblems(const SubmitAsked& asked, const SubmitTotals& totals) {
  for (std::size_t i = 0; i < totals.problems.size() && i < kProblemsShown; ++i) {
    PrintError(Where(asked, totals.problems[i].first) + totals.problems[i].second);
  }
  if (totals.bad > kProblemsShown) {
    PrintError("… and " + WithCommas(totals.bad - kProblemsShown) +
               " more bad rows; --json lists up to 1,000");
  }
}

// What keeps rows out, after the number of those that are in.
std::string Faults(const SubmitTotals& totals) {
  std::string text;
  if (totals.differing > 0)
    text += ", " + WithCommas(totals.differing) + " with the key of a task that has other params";
  if (totals.bad > 0) text += ", " + Count(totals.bad, "bad row", "bad rows");
  return text;
}

std::string Summary(const SubmitAsked& asked, const SubmitTotals& totals) {
  const std::string faults = Faults(totals);
  if (asked.all_or_nothing && totals.stopped) return "stopped: nothing submitted";
  if (asked.all_or_nothing && !faults.empty()) {
    return "nothing submitted: " + faults.substr(2) + "; without --all-or-nothing the good ones go in";
  }
  std::string text = totals.stopped ? "stopped: " : "";
  text += WithCommas(totals.added);
  if (totals.stopped && !asked.rows) text += " of " + WithCommas(asked.count);
  text += " submitted";
  const std::uint64_t same = totals.duplicates - totals.differing;
  if (same > 0 || asked.keyed) text += ", " + WithCommas(same) + " there already";
  return text + faults;
}

// Where to go on from.
void PrintStop(const SubmitAsked& asked, const SubmitTotals& totals) {
  if (!asked.rows || asked.all_or_nothing) return;
  PrintNote((totals.last_line == 0 ? std::string("no row was dealt with")
                                   : "the rows up to line " + std::to_string(totals.last_line) +
                                         " were dealt with, those behind it were not") +
            (!asked.keyed         ? ""
             : asked.file.empty() ? "; the same query may be submitted again"
                                  : "; the same file may be submitted again"));
}

}  // namespace

nlohmann::ordered_json ToJson(const std::string& shard, const TableName& table, const SubmitTotals& totals) {
  nlohmann::ordered_json out{
      {"submitted", totals.added}, {"duplicates", totals.duplicates}, {"bad", totals.bad}};
  if (totals.stopped) out["stopped_after_line"] = totals.last_line;
  if (!totals.batch.empty()) out["batch"] = {{"name", totals.batch}, {"state", totals.batch_state}};
  out["names"] = nlohmann::ordered_json::array();
  for (const std::uint64_t id : totals.ids) out["names"].push_back(ToString(TaskName{shard, {table, id}}));
  out["duplicate_of"] = nlohmann::ordered_json::array();
  for (const std::string& holder : totals.holders) out["duplicate_of"].push_back(shard + "/" + holder);
  out["problems"] = nlohmann::ordered_json::array();
  for (const auto& [line, why] : totals.problems)
    out["problems"].push_back({{"line", line}, {"problem", why}});
  out["other_params"] = nlohmann::ordered_json::array();
  for (const OtherParams& other : totals.others) {
    out["other_params"].push_back(
        {{"line", other.line}, {"key", other.key}, {"task", shard + "/" + other.holder}});
  }
  return out;
}

void PrintFaults(const SubmitAsked& asked, const std::string& shard, const SubmitTotals& totals) {
  PrintProblems(asked, totals);
  PrintOthers(asked, shard, totals);
}

void PrintSubmitted(const SubmitAsked& asked, const std::string& shard, const TableName& table,
                    const SubmitTotals& totals) {
  PrintFaults(asked, shard, totals);
  if (totals.stopped) PrintStop(asked, totals);
  const bool single = !asked.rows && asked.count == 1;
  if (single && totals.added == 1 && !totals.ids.empty()) {
    PrintLine("submitted " + ToString(TaskName{shard, {table, totals.ids[0]}}));
  } else if (single && totals.duplicates == 1 && totals.differing == 0 && !totals.holders.empty()) {
    PrintLine("there already: the key '" + asked.key + "' belongs to " + shard + "/" + totals.holders[0]);
  } else {
    PrintLine(Summary(asked, totals));
  }
}

}  // namespace millrace::engine
