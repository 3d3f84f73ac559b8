/* A plugin in plain C that uses every part of <millrace/plugin.h> as its first version had it. It is built
 * three times: against the frozen copy of that version beside it, against today's header, and against one
 * whose structs have grown. All three must work in every host (tests/unit/plugin/abi). */
#include <millrace/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static millrace_text text_of(const char* text) {
  millrace_text made;
  made.data = text;
  made.size = strlen(text);
  return made;
}

/* What it was opened with: type, options and a secret, one behind the other. */
static void* open_handler(const millrace_open* open) {
  millrace_text token;
  char* instance;
  if (open->struct_size < offsetof(millrace_open, refuse) + sizeof open->refuse) return NULL;
  if (open->secret(open->host, text_of("token"), &token) != MILLRACE_OK) {
    open->refuse(open->host, text_of("it needs a token"));
    return NULL;
  }
  instance = malloc(512);
  snprintf(instance, 512, "%.*s %.*s %.*s", (int)open->handler.size, open->handler.data,
           (int)open->options.size, open->options.data, (int)token.size, token.data);
  return instance;
}

static int32_t take_row(void* receiver, const millrace_text* columns, const millrace_text* cells,
                        size_t count) {
  if (count > 0 && columns[0].size > 0 && cells[0].data != NULL) *(size_t*)receiver += cells[0].size;
  return 0;
}

/* Everything that a host does, for the first task of the call. 0: all of it worked. */
static int ask_host(millrace_call* call, const millrace_host* host) {
  millrace_text error = {0};
  millrace_value values[2];
  millrace_new_task added_task;
  uint64_t affected = 0;
  int32_t added = 0;
  size_t bytes = 0;
  if (host->struct_size < offsetof(millrace_host, settle) + sizeof host->settle) return 1;
  if (host->should_stop(call) != 0 || host->time_left_us(call) <= 0) return 2;
  host->log(call, MILLRACE_LOG_WARNING, text_of("hello from C"));
  if (host->save_progress(call, 0, text_of("half"), &error) != MILLRACE_OK) return 3;
  memset(values, 0, sizeof values);
  values[0].kind = MILLRACE_INTEGER;
  values[0].integer = 7;
  values[1].kind = MILLRACE_TEXT;
  values[1].text = text_of("seven");
  if (host->sql(call, text_of("SELECT ?, ?"), values, 2, take_row, &bytes, &affected, &error) != MILLRACE_OK)
    return 4;
  memset(&added_task, 0, sizeof added_task);
  added_task.struct_size = sizeof added_task;
  added_task.priority = -1;
  added_task.handler = text_of("noop");
  added_task.params = text_of("{\"n\":1}");
  added_task.key = text_of("k");
  if (host->submit(call, &added_task, &added, &error) != MILLRACE_OK || added != 1) return 5;
  return bytes == 3 && affected == 2 ? 0 : 6;
}

static void run(void* instance, millrace_call* call, const millrace_host* host, const millrace_task* tasks,
                size_t count) {
  const int problem = ask_host(call, host);
  size_t i;
  for (i = 0; i < count; ++i) {
    char said[1024];
    millrace_outcome outcome;
    snprintf(said, sizeof said, "%d %s %.*s %.*s %u", problem, (const char*)instance, (int)tasks[i].name.size,
             tasks[i].name.data, (int)tasks[i].params.size, tasks[i].params.data, tasks[i].attempt);
    memset(&outcome, 0, sizeof outcome);
    outcome.struct_size = sizeof outcome;
    outcome.kind = i % 2 == 0 ? MILLRACE_DONE : MILLRACE_RETRY;
    outcome.delay_us = i % 2 == 0 ? 0 : 5000000;
    outcome.text = text_of(said);
    outcome.error_class = text_of(i % 2 == 0 ? "" : "odd");
    host->settle(call, i, &outcome);
  }
}

static void close_handler(void* instance) { free(instance); }

static const millrace_handler handler = {
    sizeof(millrace_handler), 10, "plain_c", "Plain C", open_handler, run, close_handler};
static const millrace_handler* const handlers[] = {&handler};
static const millrace_plugin plugin = {
    MILLRACE_PLUGIN_MAGIC, MILLRACE_ABI_VERSION, sizeof(millrace_plugin), "plugin_of_v1", "1.0", handlers, 1};

__attribute__((visibility("default"))) const millrace_plugin* millrace_plugin_entry(void);
const millrace_plugin* millrace_plugin_entry(void) { return &plugin; }
