/* The binary interface between Millrace and a plugin: plain C, so that a plugin built by another compiler, or
 * years ago, still loads. C++ authors use <millrace/handler.h> and never see this file.
 *
 * A plugin exports one function, millrace_plugin_entry, which returns a descriptor with static lifetime.
 * The descriptor is checked (magic, ABI version, sizes, names) before anything else in the plugin is called.
 * Rules: no exception crosses this border; texts are UTF-8, not terminated, and live for the call they are
 * passed to.
 * Growth: a struct with a struct_size grows at its end only, without padding there, and the size says how
 * much of it its maker knew. Whoever reads it reads no more than that (MILLRACE_HAS), and takes the rest for
 * zero, the default of every member that was added. So an older plugin works in a newer host, and a newer one
 * in an older. millrace_text, millrace_value and millrace_task stand in arrays and never change: what there
 * is more to know of a task is asked of the host. */
#ifndef MILLRACE_PLUGIN_H_
#define MILLRACE_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MILLRACE_PLUGIN_MAGIC UINT64_C(0x454341524c4c494d) /* "MILLRACE" */
#define MILLRACE_ABI_VERSION 1                             /* changes only where no growth will do */

/* Whether the maker of *pointer knew this member: MILLRACE_HAS(millrace_host, host, settle). */
#define MILLRACE_HAS(type, pointer, member) \
  ((pointer)->struct_size >= offsetof(type, member) + sizeof((pointer)->member))

typedef struct millrace_text {
  const char* data; /* may be NULL where size is 0 */
  size_t size;
} millrace_text;

enum { MILLRACE_NULL = 0, MILLRACE_INTEGER = 1, MILLRACE_REAL = 2, MILLRACE_TEXT = 3 };

typedef struct millrace_value {
  int32_t kind;
  int64_t integer;
  double real;
  millrace_text text;
} millrace_value;

/* One task, as claimed for this attempt. Times are microseconds since 1970, UTC. */
typedef struct millrace_task {
  uint32_t struct_size;
  uint32_t attempt;  /* claims so far, this one included: 1 on the first */
  uint32_t failures; /* failed attempts so far */
  uint32_t priority;
  int64_t run_at_us;
  int64_t created_at_us;
  millrace_text name;            /* shard/table/id */
  millrace_text handler;         /* the task type; one handler may serve several */
  millrace_text params;          /* JSON */
  millrace_text key;             /* the business key, may be empty */
  millrace_text batch;           /* may be empty */
  millrace_text idempotency_key; /* the same on every attempt */
  millrace_text progress;        /* what an earlier attempt saved, may be empty */
} millrace_task;

enum { MILLRACE_DONE = 0, MILLRACE_RETRY = 1, MILLRACE_FAIL = 2, MILLRACE_SNOOZE = 3, MILLRACE_SKIP = 4 };

typedef struct millrace_outcome {
  uint32_t struct_size;
  int32_t kind;
  int64_t at_us;             /* RETRY, SNOOZE: due again at this time; 0: see delay_us */
  int64_t delay_us;          /* RETRY, SNOOZE: due again after this; -1: RETRY by the ladder */
  millrace_text text;        /* DONE: the result; otherwise why */
  millrace_text error_class; /* short and stable: "timeout", "http_503"; may be empty */
} millrace_outcome;

typedef struct millrace_new_task {
  uint32_t struct_size;
  int32_t priority;  /* 0 … 9; -1: the default */
  int64_t run_at_us; /* 0: see delay_us */
  int64_t delay_us;  /* 0: due at once */
  millrace_text handler;
  millrace_text params;
  millrace_text key;
  millrace_text batch;
} millrace_new_task;

#define MILLRACE_ALL_TASKS SIZE_MAX

/* One run of a handler; opaque, valid until run() returns, used on the thread of run() alone. */
typedef struct millrace_call millrace_call;

/* One row of a query; cells[i].data is NULL for SQL NULL. Return 0 to go on, another number to stop. */
typedef int32_t (*millrace_row_fn)(void* receiver, const millrace_text* columns, const millrace_text* cells,
                                   size_t count);

enum { MILLRACE_OK = 0, MILLRACE_ERROR = 1 };
enum { MILLRACE_LOG_INFO = 0, MILLRACE_LOG_WARNING = 1, MILLRACE_LOG_ERROR = 2 };

/* What the host does for a running handler. Where a function takes `error`, it is filled when the function
 * returns MILLRACE_ERROR, and lives until the next call into the host. */
typedef struct millrace_host {
  uint32_t struct_size;
  /* 1: stop soon (the time limit, a cancel, a shutdown, a permit or a life that is lost); may also be called
   * from the handler's own threads. */
  int32_t (*should_stop)(const millrace_call* call);
  int64_t (*time_left_us)(const millrace_call* call);
  void (*log)(millrace_call* call, int32_t level, millrace_text message);
  /* Shown to people, and given to the next attempt of task `index`, or of the one that was begun (see
   * begin_task). At most 4096 bytes. */
  int32_t (*save_progress)(millrace_call* call, size_t index, millrace_text progress, millrace_text* error);
  /* SQL in the tasks' own transaction, which commits with their settle. `?` stands for a value. */
  int32_t (*sql)(millrace_call* call, millrace_text statement, const millrace_value* values, size_t count,
                 millrace_row_fn row, void* receiver, uint64_t* affected, millrace_text* error);
  /* Adds a task in that transaction. `added` is 0 where its key is taken. */
  int32_t (*submit)(millrace_call* call, const millrace_new_task* task, int32_t* added, millrace_text* error);
  /* Says what became of task `index`. The last word counts; a task without one is a failed attempt. A call
   * of several fails as a whole where one has none, or where a task is named that it does not have: its SQL
   * is rolled back, and they run again apart. MILLRACE_ALL_TASKS, where the host has begin_task: the call
   * failed as a whole, by no task's own fault. */
  void (*settle)(millrace_call* call, size_t index, const millrace_outcome* outcome);
  /* A later host than the first has it: look at struct_size. Says whose SQL follows, in a call of several
   * tasks: that of task `index` alone, which stays where its outcome is DONE and is undone otherwise; each
   * task is begun once, and settled before the next begins. MILLRACE_ALL_TASKS: SQL is sent for the tasks
   * that will be DONE, and for them alone. MILLRACE_ERROR: run no further task and return; they run again. Of
   * a plugin that never says it, the SQL of a call is committed only where all tasks are DONE. */
  int32_t (*begin_task)(millrace_call* call, size_t index);
} millrace_host;

/* What a handler is opened with. `secret` returns MILLRACE_ERROR for a name that the configuration lacks. */
typedef struct millrace_open {
  uint32_t struct_size;
  millrace_text handler; /* the task type it is opened for */
  millrace_text options; /* JSON object from the configuration; "{}" where there is none */
  void* host;
  int32_t (*secret)(void* host, millrace_text name, millrace_text* value);
  void (*refuse)(void* host, millrace_text why); /* call it, then return NULL from open */
} millrace_open;

/* What a handler brings with it: it holds where the configuration (handlers.<type>) does not say. 0 and NULL:
 * nothing. It is checked as a configuration is. */
typedef struct millrace_defaults {
  uint32_t struct_size;
  uint32_t concurrency;     /* tasks at once in one worker */
  int64_t timeout_us;       /* the time limit of an attempt */
  const int64_t* delays_us; /* the ladder: after the first, second, … failed attempt; then the last again */
  uint32_t delay_count;
  uint32_t max_failures; /* the failed attempt with this number is the last */
} millrace_defaults;

/* A failed attempt, about which its handler is asked. */
typedef struct millrace_failure {
  uint32_t struct_size;
  uint32_t number;           /* of failed attempts, this one included: 1 is the first */
  int64_t ladder_delay_us;   /* when it would be due again by the ladder */
  millrace_text text;        /* why */
  millrace_text error_class; /* may be empty */
} millrace_failure;

typedef struct millrace_handler {
  uint32_t struct_size;
  uint32_t max_batch;  /* 1: one task a call; more: up to so many, in one transaction; at most 999 */
  const char* name;    /* [a-z][a-z0-9_.]* */
  const char* summary; /* one line for people */
  void* (*open)(const millrace_open* open);
  /* Called from several threads at once on one instance. */
  void (*run)(void* instance, millrace_call* call, const millrace_host* host, const millrace_task* tasks,
              size_t count);
  void (*close)(void* instance);
  /* A later host than the first reads what follows; all of it may be NULL. */
  const millrace_defaults* defaults; /* of static lifetime */
  /* Asked when an attempt has failed by what the handler said or threw, without a time of its own:
   * MILLRACE_RETRY and *delay_us, MILLRACE_FAIL, or any other number: by the ladder. May be called like run,
   * and more than once for one attempt. Where the configuration has a ladder, or one for the class of the
   * failure, that counts instead. */
  int32_t (*next_retry)(void* instance, const millrace_task* task, const millrace_failure* failure,
                        int64_t* delay_us);
} millrace_handler;

typedef struct millrace_plugin {
  uint64_t magic;
  uint32_t abi_version;
  uint32_t struct_size;
  const char* name;
  const char* version;
  const millrace_handler* const* handlers; /* handler_count pointers */
  size_t handler_count;
} millrace_plugin;

#define MILLRACE_PLUGIN_ENTRY "millrace_plugin_entry"
typedef const millrace_plugin* (*millrace_plugin_entry_fn)(void);

#ifdef __cplusplus
}
#endif

#endif /* MILLRACE_PLUGIN_H_ */
