#include "tests/unit/planner/plan_case.h"

#include <algorithm>

namespace millrace::engine {
namespace {

// What a worker or slice is made of; plain numbers, so that they shrink.
struct Piece {
  int weight = 1;
  int groups = 0;  // bits; 0: all
  int nth = 0;     // leaves every nth slice out; below 2: none
  int group = 0;
  int owner = 0;  // the number of workers: nobody
};

rc::Gen<Piece> AnyPiece(const CaseLimits& limits) {
  // Few different weights make ties, which is where plans go wrong.
  const auto weight =
      rc::gen::oneOf(rc::gen::inRange(1, 4), rc::gen::inRange(1, limits.heaviest + 1), rc::gen::just(1));
  return rc::gen::build<Piece>(rc::gen::set(&Piece::weight, weight),
                               rc::gen::set(&Piece::groups, rc::gen::inRange(0, 1 << limits.groups)),
                               rc::gen::set(&Piece::nth, rc::gen::inRange(0, 4)),
                               rc::gen::set(&Piece::group, rc::gen::inRange(0, limits.groups)),
                               rc::gen::set(&Piece::owner, rc::gen::inRange(0, limits.workers + 1)));
}

PlanWorker ToWorker(const Piece& piece, bool constrained, std::size_t slices) {
  PlanWorker worker{.weight = static_cast<std::uint32_t>(piece.weight)};
  if (!constrained) return worker;
  if (piece.groups != 0) {
    worker.groups.emplace();
    for (GroupIndex group = 0; group < 31; ++group) {
      if (piece.groups >> group & 1) worker.groups->push_back(group);
    }
  }
  if (piece.nth >= 2) {
    worker.slices.emplace();
    for (SliceIndex slice = 0; slice < slices; ++slice) {
      if (slice % piece.nth != 0) worker.slices->push_back(slice);
    }
  }
  return worker;
}

PlanInput ToInput(const std::vector<Piece>& workers, const std::vector<Piece>& slices, bool constrained) {
  PlanInput input;
  for (const Piece& piece : workers) input.workers.push_back(ToWorker(piece, constrained, slices.size()));
  for (const Piece& piece : slices) {
    const auto owner = static_cast<WorkerIndex>(piece.owner);
    input.slices.push_back({static_cast<GroupIndex>(piece.group), owner < workers.size() ? owner : kNobody});
  }
  return input;
}

rc::Gen<std::vector<Piece>> AtMost(int count, const rc::Gen<Piece>& piece) {
  return rc::gen::mapcat(rc::gen::inRange(0, count + 1), [piece](int size) {
    return rc::gen::container<std::vector<Piece>>(static_cast<std::size_t>(size), piece);
  });
}

template <class Visit>
void ForEachAssignment(const PlanInput& input, std::vector<WorkerIndex>& owners, SliceIndex slice,
                       const Visit& visit) {
  if (slice == input.slices.size()) return visit();
  bool placeable = false;
  for (WorkerIndex worker = 0; worker < input.workers.size(); ++worker) {
    if (!Accepts(input, worker, slice)) continue;
    placeable = true;
    owners[slice] = worker;
    ForEachAssignment(input, owners, slice + 1, visit);
  }
  if (placeable) return;
  owners[slice] = kNobody;
  ForEachAssignment(input, owners, slice + 1, visit);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const PlanInput& input) {
  for (std::size_t w = 0; w < input.workers.size(); ++w) {
    const PlanWorker& worker = input.workers[w];
    out << "worker " << w << ": weight " << worker.weight;
    if (worker.groups) {
      out << ", groups";
      for (const GroupIndex group : *worker.groups) out << ' ' << group;
    }
    if (worker.slices) {
      out << ", slices";
      for (const SliceIndex slice : *worker.slices) out << ' ' << slice;
    }
    out << '\n';
  }
  for (std::size_t s = 0; s < input.slices.size(); ++s) {
    out << "slice " << s << ": group " << input.slices[s].group << ", owner ";
    input.slices[s].owner == kNobody ? out << "none\n" : out << input.slices[s].owner << '\n';
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Score& score) {
  return out << score.unplaced << " unplaced, imbalance " << score.imbalance << ", " << score.moves
             << " moves";
}

rc::Gen<PlanInput> AnyCase(CaseLimits limits) {
  const auto piece = AnyPiece(limits);
  return rc::gen::map(rc::gen::pair(AtMost(limits.workers, piece), AtMost(limits.slices, piece)),
                      [limits](const std::pair<std::vector<Piece>, std::vector<Piece>>& pieces) {
                        return ToInput(pieces.first, pieces.second, limits.constrained);
                      });
}

bool Accepts(const PlanInput& input, WorkerIndex worker, SliceIndex slice) {
  const auto has = [](const auto& list, std::uint32_t wanted) {
    return !list || std::find(list->begin(), list->end(), wanted) != list->end();
  };
  return has(input.workers[worker].groups, input.slices[slice].group) &&
         has(input.workers[worker].slices, slice);
}

std::vector<std::int64_t> LoadsOf(const PlanInput& input, const std::vector<WorkerIndex>& owners) {
  std::vector<std::int64_t> loads(input.workers.size(), 0);
  for (const WorkerIndex owner : owners) {
    if (owner != kNobody) ++loads[owner];
  }
  return loads;
}

PlanInput After(PlanInput input, const std::vector<WorkerIndex>& owners) {
  for (std::size_t s = 0; s < owners.size(); ++s) input.slices[s].owner = owners[s];
  return input;
}

Score ScoreOf(const PlanInput& input, const std::vector<WorkerIndex>& owners) {
  Score score;
  for (std::size_t s = 0; s < owners.size(); ++s) {
    if (owners[s] == kNobody) {
      ++score.unplaced;
    } else if (owners[s] != input.slices[s].owner) {
      ++score.moves;
    }
  }
  std::int64_t product = 1;
  for (const PlanWorker& worker : input.workers) product *= worker.weight;
  const std::vector<std::int64_t> loads = LoadsOf(input, owners);
  for (std::size_t w = 0; w < loads.size(); ++w) {
    score.imbalance += loads[w] * loads[w] * (product / input.workers[w].weight);
  }
  return score;
}

Score BestScore(const PlanInput& input) {
  std::vector<WorkerIndex> owners(input.slices.size(), kNobody);
  Score best = ScoreOf(input, owners);
  ForEachAssignment(input, owners, 0, [&] { best = std::min(best, ScoreOf(input, owners)); });
  return best;
}

}  // namespace millrace::engine
