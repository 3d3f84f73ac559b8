#include "coordinator/app/cluster_state_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/base/escape.h"
#include "framework/config/position_map.h"
#include "framework/config/section.h"

namespace millrace::engine {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestId = 1024;
constexpr std::size_t kProblemsShown = 10;

KeyPath Below(KeyPath path, std::string key) {
  path.push_back(std::move(key));
  return path;
}

std::vector<std::string> ReadTexts(const json& list, const KeyPath& path, Problems& problems) {
  std::vector<std::string> texts;
  if (!list.is_array()) {
    problems.Add(path, "this must be a list of texts");
    return texts;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_string()) {
      problems.Add(Below(path, std::to_string(i)), "this must be a text in quotes");
    } else {
      texts.push_back(list[i].get<std::string>());
    }
  }
  return texts;
}

std::optional<std::vector<std::string>> ReadLimit(Section& section, const char* key) {
  const json* list = section.Child(key);
  if (list == nullptr || list->is_null()) return std::nullopt;
  return ReadTexts(*list, section.Path(key), section.problems());
}

void ReadRequired(Section& section, const char* key, std::string& value) {
  if (section.Child(key) == nullptr) {
    section.Add(key, "missing: every element needs one");
  } else {
    section.Text(key, value, kLongestId);
  }
}

StateWorker ReadWorker(Section& section) {
  StateWorker worker;
  ReadRequired(section, "id", worker.id);
  section.Integer("weight", worker.weight, 1, kMaxWeight);
  worker.handlers = ReadLimit(section, "handlers");
  worker.slices = ReadLimit(section, "slices");
  return worker;
}

StateSlice ReadSlice(Section& section) {
  StateSlice slice;
  ReadRequired(section, "id", slice.id);
  ReadRequired(section, "group", slice.group);
  return slice;
}

// A list of objects whose ids differ.
template <class Element>
std::vector<Element> ReadElements(Section& document, const char* key, Element (*read)(Section&)) {
  std::vector<Element> elements;
  const json* list = document.Child(key);
  if (list == nullptr || !list->is_array()) {
    document.Add(key, list == nullptr ? "missing: write a list, which may be empty" : "this must be a list");
    return elements;
  }
  std::set<std::string> ids;
  elements.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    Section section((*list)[i], Below(document.Path(key), std::to_string(i)), document.problems());
    elements.push_back(read(section));
    section.Done();
    const std::string& id = elements.back().id;
    if (!id.empty() && !ids.insert(id).second) {
      section.Add("id", "'" + Escape(id) + "' stands here for the second time; keep one of them");
    }
  }
  return elements;
}

void ReadGroups(Section& document, ClusterState& state) {
  const json* groups = document.Child("groups");
  if (groups == nullptr) return;
  Section section(*groups, document.Path("groups"), document.problems());
  for (const auto& [name, handlers] : section.Every().items()) {
    state.groups[name] = ReadTexts(handlers, section.Path(name), document.problems());
  }
}

void ReadCurrent(Section& document, ClusterState& state) {
  const json* current = document.Child("current");
  if (current == nullptr) return;
  Section section(*current, document.Path("current"), document.problems());
  for (const auto& [slice, worker] : section.Every().items()) {
    if (worker.is_string()) {
      state.current.emplace(slice, worker.get<std::string>());
    } else if (!worker.is_null()) {
      section.Add(slice, "this must be the id of a worker, in quotes");
    }
  }
}

ClusterState ReadDocument(const json& value, Problems& problems) {
  ClusterState state;
  Section document(value, {}, problems);
  state.workers = ReadElements(document, "workers", ReadWorker);
  state.slices = ReadElements(document, "slices", ReadSlice);
  ReadGroups(document, state);
  ReadCurrent(document, state);
  document.Done();
  return state;
}

// A large file with one habit gone wrong has as many problems as lines.
Failure Refuse(const Problems& problems) {
  std::string text = problems.Text();
  std::size_t end = 0;
  for (std::size_t shown = 0; shown < kProblemsShown && end != text.npos; ++shown) {
    end = text.find('\n', end + 1);
  }
  if (end != text.npos) {
    const auto more = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
    text = text.substr(0, end) + "\nand " + std::to_string(more) + " more of the kind";
  }
  return Fail(ErrorCode::Invalid, text);
}

}  // namespace

Result<ClusterState> ReadClusterState(std::string_view text, std::string_view source) {
  const PositionMap positions = PositionMap::Read(text);
  Problems problems(positions, std::string(source));
  for (const TextProblem& problem : positions.problems()) {
    problems.AddAt(problem.line, problem.path, problem.what);
  }
  if (!problems.empty()) return Refuse(problems);
  const json value = json::parse(text.begin(), text.end(), nullptr, true, true);
  ClusterState state = ReadDocument(value, problems);
  if (!problems.empty()) return Refuse(problems);
  return state;
}

}  // namespace millrace::engine
