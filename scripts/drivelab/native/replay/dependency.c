/* Find what a request waits for. */
#include "engine.h"

/* Return whether a dependency is incomplete; otherwise raise `due` to the end of the wait for it. */
static bool is_awaited(const struct engine *engine, uint32_t dependency, uint64_t think_ns, uint64_t *due)
{
    const struct result_record *result = &engine->results->records[dependency];
    if (__atomic_load_n(&result->state, __ATOMIC_ACQUIRE) != COMPLETED)
        return true;
    if (result->complete_ns + think_ns > *due)
        *due = result->complete_ns + think_ns;
    return false;
}

uint32_t dependency_awaited(const struct engine *engine, uint32_t index, uint64_t *due)
{
    const struct schedule *schedule = engine->schedule;
    const struct schedule_record *record = &schedule->records[index];
    if (is_awaited(engine, record->after - 1, record->think_ns, due))
        return record->after;
    if (record->flags & MORE) {
        const struct further_dependency *end = schedule->further + schedule->header.further;
        for (const struct further_dependency *further = schedule_further(schedule, index);
             further < end && further->index == index; further++)
            if (is_awaited(engine, further->after - 1, 0, due))
                return further->after;
    }
    return 0;
}
