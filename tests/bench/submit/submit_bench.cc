// Adds the rows of a file to one private server in turn: by `millrace submit --from`, from its start to its
// end, and by a bare loop of INSERTs of 1,000 rows each, whose texts were made beforehand. Both commit
// durably, both without keys and with a key a row (which the bare loop does not enter in the ledger). Prints
// the medians and those of the ratios of each pair. Exits 1 where a ratio is below what was asked for.
//   submit_bench [rows, default 200000] [rounds, default 3] [least, default 0] [least with keys, default 0]
//                [csv (default) or jsonl]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "framework/store/mysql/store.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/report.h"
#include "tests/support/run_process.h"
#include "tests/support/sql_connection.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kRowsOfInsert = 1'000;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "submit_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class Work>
double Seconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The cells of a row, as a shop's list of payments has them.
struct Payment {
  explicit Payment(std::size_t row)
      : id(std::to_string(row)),
        customer(std::to_string(row * 7919 % 599 + 1)),
        amount(std::to_string(row % 12) + ".99"),
        at("2005-05-" + std::to_string(row % 20 + 10) + " 11:30:37") {}
  std::string Params() const {
    return R"({"payment_id":)" + id + R"(,"customer_id":)" + customer + R"(,"amount":)" + amount +
           R"(,"payment_date":")" + at + "\"}";
  }
  std::string id, customer, amount, at;
};

class Bench {
 public:
  Bench(std::size_t rows, const std::string& format) : rows_(rows) {
    const auto store = mysql::OpenStore(database_.url(), {.password_file = database_.password_file()});
    if (!store) Die(store.error().message);
    if (auto made = (*store)->OpenSchema()->Apply({.tables = 1, .slices = 64}); !made)
      Die(made.error().message);
    char form[] = "/tmp/submit_bench_XXXXXX";
    if (mkdtemp(form) == nullptr) Die("no folder for the file");
    folder_ = form;
    file_ = folder_ + "/payments." + format;
    WriteFile(format == "csv");
    for (const bool keyed : {false, true}) MakeInserts(keyed);
  }
  ~Bench() { std::filesystem::remove_all(folder_); }

  double Bare(bool keyed) {
    Empty();
    const double seconds = Seconds([&] {
      for (const std::string& insert : keyed ? keyed_inserts_ : inserts_) sql_.Ask(insert);
    });
    return RateOf(seconds);
  }
  double Submit(bool keyed) {
    Empty();
    const StoreUrl& url = database_.url();
    const std::string command = "MILLRACE_PASSWORD_FILE=" + database_.password_file() +
                                " " MILLRACE_BINARY " submit --handler noop --from " + file_ +
                                (keyed ? " --key-column payment_id" : "") + " --store mysql://" + url.user +
                                "@" + url.host + ":" + std::to_string(url.port) + "/" + url.database;
    testing::ProcessResult result;
    const double seconds = Seconds([&] { result = testing::RunProcess(command, 1'200); });
    if (result.exit_code != 0) Die("submit failed: " + result.output);
    return RateOf(seconds);
  }
  // One row, one commit, in milliseconds.
  double Commit() {
    Empty();
    std::vector<double> times;
    for (int i = 0; i < 200; ++i)
      times.push_back(1e3 * Seconds([&] { sql_.Ask("INSERT INTO tasks (handler) VALUES ('noop')"); }));
    return Median(times);
  }

 private:
  void WriteFile(bool csv) {
    std::ofstream file(file_);
    if (csv) file << "payment_id,customer_id,amount,payment_date\n";
    for (std::size_t i = 1; i <= rows_; ++i) {
      const Payment row(i);
      if (csv) {
        file << row.id << ',' << row.customer << ',' << row.amount << ',' << row.at << '\n';
      } else {
        file << row.Params() << '\n';
      }
    }
  }
  void MakeInserts(bool keyed) {
    for (std::size_t i = 1; i <= rows_; ++i) {
      auto& inserts = keyed ? keyed_inserts_ : inserts_;
      const bool first = (i - 1) % kRowsOfInsert == 0;
      if (first) {
        inserts.emplace_back(keyed ? "INSERT INTO tasks (handler,params,biz_key) VALUES "
                                   : "INSERT INTO tasks (handler,params) VALUES ");
      }
      const Payment row(i);
      inserts.back() += std::string(first ? "" : ",") + "('noop','" + row.Params() + "'" +
                        (keyed ? ",'" + row.id + "')" : ")");
    }
  }
  void Empty() {
    sql_.Ask("TRUNCATE tasks");
    sql_.Ask("TRUNCATE tasks_keys");
  }
  double RateOf(double seconds) {
    if (sql_.Ask("SELECT COUNT(*) FROM tasks") != std::to_string(rows_)) Die("rows are missing");
    return static_cast<double>(rows_) / seconds;
  }

  const std::size_t rows_;
  PrivateMariadb server_{{"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G"}};
  TestDatabase database_{ServerOf(server_)};
  SqlConnection sql_{database_.url(), database_.password_file()};
  std::string folder_;
  std::string file_;
  std::vector<std::string> inserts_;
  std::vector<std::string> keyed_inserts_;
};

// Whether the ratio is what was asked for.
bool Compare(Bench& bench, bool keyed, std::size_t rounds, double least) {
  std::vector<double> bare, submit, ratios;
  for (std::size_t round = 0; round < rounds; ++round) {
    // In turn first and last, so that a drift of the machine favours nobody.
    if (round % 2 == 0) bare.push_back(bench.Bare(keyed));
    submit.push_back(bench.Submit(keyed));
    if (round % 2 != 0) bare.push_back(bench.Bare(keyed));
    ratios.push_back(submit.back() / bare.back());
    std::printf("round %zu%s: bare %.0f, submit %.0f rows/s\n", round + 1, keyed ? ", with keys" : "",
                bare.back(), submit.back());
  }
  char text[300];
  std::snprintf(
      text, sizeof text,
      "medians of %zu pairs: a bare loop of INSERTs %.0f rows/s, submit --from %.0f (%.2f of it, %.2f to "
      "%.2f)",
      rounds, Median(bare), Median(submit), Median(ratios), *std::min_element(ratios.begin(), ratios.end()),
      *std::max_element(ratios.begin(), ratios.end()));
  const bool pass = Median(ratios) >= least;
  Report(keyed ? "submit with keys" : "submit",
         keyed ? "submit --from with a key a row adds rows at a third of the rate of bare INSERTs, at least"
               : "submit --from adds rows at half the rate of bare multi-row INSERTs, at least",
         text, pass);
  return pass;
}

int Main(int count, char** arguments) {
  const auto number = [&](int i, double otherwise) {
    return count > i ? std::strtod(arguments[i], nullptr) : otherwise;
  };
  const auto rounds = static_cast<std::size_t>(number(2, 3));
  Bench bench(static_cast<std::size_t>(number(1, 200'000)), count > 5 ? arguments[5] : "csv");
  std::printf("one durable commit takes %.2f ms\n", bench.Commit());
  const bool plain = Compare(bench, false, rounds, number(3, 0));
  const bool keyed = Compare(bench, true, rounds, number(4, 0));
  return plain && keyed ? 0 : 1;
}

}  // namespace
}  // namespace millrace::engine

int main(int count, char** arguments) { return millrace::engine::Main(count, arguments); }
