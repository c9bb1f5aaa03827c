#include "matcher.h"

#include <stdlib.h>
#include <string.h>

uint32_t new_row(struct matcher *m)
{
    uint32_t index = m->free_row;
    if (index) {
        m->free_row = m->rows[index].pid;
    } else {
        if (m->rows_used >= m->rows_allocated) {
            uint32_t wanted = m->rows_allocated ? 2 * m->rows_allocated : 4096;
            struct row *rows = realloc(m->rows, wanted * sizeof *rows);
            if (!rows)
                return 0;
            m->rows = rows;
            m->rows_allocated = wanted;
        }
        index = m->rows_used++;
    }
    memset(&m->rows[index], 0, sizeof m->rows[index]);
    return index;
}

/* Release a row that nothing refers to. */
void drop_if_done(struct matcher *m, uint32_t index)
{
    struct row *row = &m->rows[index];
    if (!row->given_out || row->open || row->remembered)
        return;
    if (row->changed) {
        if (!m->corrections)
            m->corrections = malloc(MOST_CORRECTIONS * sizeof *m->corrections);
        if (m->corrections && m->correction_count < MOST_CORRECTIONS)
            m->corrections[m->correction_count] = (struct correction){
                row->number, row->dispatch, row->complete, row->dispatch_id, row->error, row->pieces, row->requeues, 0,
            };
        m->correction_count++;
        m->no_memory |= !m->corrections;
    }
    if (row->complete == NEVER)
        m->mismatches[row->dispatch == NEVER ? UNDISPATCHED : UNCOMPLETED]++;
    row->pid = m->free_row;
    m->free_row = index;
}

bool matcher_take(struct matcher *m, struct row *to)
{
    uint64_t waiting = m->window_end - m->window_start;
    if (!waiting)
        return false;
    uint32_t number = m->window[m->window_start % WINDOW];
    struct row *row = &m->rows[number];
    if (!m->finished && (row->open || waiting <= HOLD) && waiting < WINDOW)
        return false;
    m->window_start++;
    row->given_out = true;
    *to = *row;
    drop_if_done(m, number);
    return true;
}

const struct correction *matcher_corrections(const struct matcher *m, uint64_t *count)
{
    *count = m->correction_count;
    return m->corrections;
}
