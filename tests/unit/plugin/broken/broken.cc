// A plugin that is wrong in the way that BROKEN names.
#include <millrace/handler.h>

#define WRONG_MAGIC 1
#define WRONG_ABI 2
#define SMALL_DESCRIPTOR 3
#define BAD_NAME 4
#define DOUBLED_NAME 5
#define NULL_FUNCTION 6
#define NULL_DESCRIPTOR 7
#define NO_ENTRY 8
#define MISSING_SYMBOL 9
#define HUGE_BATCH 10

namespace missing {
void FromALibraryThatIsNotLinked(int);
}

namespace {

void* Open(const millrace_open*) { return nullptr; }
void Run(void*, millrace_call*, const millrace_host*, const millrace_task*, size_t) {
#if BROKEN == MISSING_SYMBOL
  missing::FromALibraryThatIsNotLinked(1);
#endif
}
void Close(void*) {}

const millrace_handler kHandler = {sizeof(millrace_handler),
                                   BROKEN == HUGE_BATCH ? 100'000 : 1,
                                   BROKEN == BAD_NAME ? "Bad Name" : "broken",
                                   "",
                                   BROKEN == NULL_FUNCTION ? nullptr : &Open,
                                   &Run,
                                   &Close};
const millrace_handler* const kHandlers[] = {&kHandler, &kHandler};
const millrace_plugin kPlugin = {BROKEN == WRONG_MAGIC ? 1 : MILLRACE_PLUGIN_MAGIC,
                                 BROKEN == WRONG_ABI ? 7 : MILLRACE_ABI_VERSION,
                                 BROKEN == SMALL_DESCRIPTOR ? 8 : sizeof(millrace_plugin),
                                 "broken",
                                 "1.0",
                                 kHandlers,
                                 BROKEN == DOUBLED_NAME ? 2 : 1};

}  // namespace

#if BROKEN != NO_ENTRY
extern "C" __attribute__((visibility("default"))) const millrace_plugin* millrace_plugin_entry() {
  return BROKEN == NULL_DESCRIPTOR ? nullptr : &kPlugin;
}
#else
const millrace_plugin* g_unused = &kPlugin;
#endif
