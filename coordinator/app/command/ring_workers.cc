#include "coordinator/app/command/ring_workers.h"

#include "coordinator/app/command/cluster_client.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

// A ring is worth no more: each worker's node is read for it, before anything is submitted.
constexpr std::size_t kMostWorkers = 100;

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address.starts_with("[::1]");
}

}  // namespace

WorkerBells::WorkerBells(const std::map<std::string, WorkerDocument>& workers, const std::string& host) {
  for (const auto& [id, worker] : workers) {
    if (worker.doorbell.empty() || (IsLoopback(worker.doorbell) && worker.host != host)) continue;
    bells_.push_back({worker.doorbell, worker.limits});
  }
}

WorkerBells WorkerBells::Of(ClusterClient& client) {
  const auto workers = ReadWorkers(client, kMostWorkers);
  return workers ? WorkerBells(workers->documents, HostName()) : WorkerBells();
}

std::vector<std::string> WorkerBells::AddressesFor(const ShardRing& ring) const {
  std::vector<std::string> addresses;
  for (const Bell& bell : bells_) {
    if (Allows(bell.limits.shards, ring.shard)) addresses.push_back(bell.address);
  }
  return addresses;
}

void WorkerBells::Ring(const ShardRing& ring) const { SendRing(AddressesFor(ring), ring); }

}  // namespace millrace::engine
