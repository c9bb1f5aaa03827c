#define _POSIX_C_SOURCE 200809L
#include "ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define BLOCKS 4u
#define BLOCK_EVENTS 4096u

struct kept {
    struct event event;
    uint8_t payload[AHEAD_PAYLOAD_BYTES];
};

struct block {
    unsigned count; /* less than BLOCK_EVENTS: it is the last */
    struct kept events[BLOCK_EVENTS];
};

struct ahead {
    struct merge *merge;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned filled, emptied; /* numbers of blocks so far, which the mutex protects */
    bool stopping, joined;
    unsigned next; /* in the block that is read */
    struct block blocks[BLOCKS];
};

static void fill(struct merge *merge, struct block *block)
{
    block->count = 0;
    for (struct kept *kept = block->events; block->count < BLOCK_EVENTS; kept++, block->count++) {
        struct event *event = &kept->event;
        if (!merge_next(merge, event))
            return;
        if (event->payload_bytes > AHEAD_PAYLOAD_BYTES)
            event->payload_bytes = AHEAD_PAYLOAD_BYTES;
        memcpy(kept->payload, event->payload, event->payload_bytes);
        event->payload = kept->payload;
    }
}

static void *read_ahead(void *argument)
{
    struct ahead *ahead = argument;
    for (unsigned number = 0;; number++) {
        pthread_mutex_lock(&ahead->mutex);
        while (number - ahead->emptied == BLOCKS && !ahead->stopping)
            pthread_cond_wait(&ahead->changed, &ahead->mutex);
        bool stopping = ahead->stopping;
        pthread_mutex_unlock(&ahead->mutex);
        if (stopping)
            return NULL;
        struct block *block = &ahead->blocks[number % BLOCKS];
        fill(ahead->merge, block);
        bool last = block->count < BLOCK_EVENTS;
        pthread_mutex_lock(&ahead->mutex);
        ahead->filled = number + 1;
        pthread_cond_signal(&ahead->changed);
        pthread_mutex_unlock(&ahead->mutex);
        if (last)
            return NULL;
    }
}

struct ahead *ahead_start(struct merge *merge)
{
    struct ahead *ahead = malloc(sizeof *ahead);
    if (!ahead)
        return NULL;
    ahead->merge = merge;
    ahead->filled = ahead->emptied = ahead->next = 0;
    ahead->stopping = ahead->joined = false;
    pthread_mutex_init(&ahead->mutex, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    sigset_t all, before; /* signals are for the threads of the program */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&ahead->thread, NULL, read_ahead, ahead);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return ahead;
    ahead->joined = true;
    ahead_stop(ahead);
    return NULL;
}

void ahead_stop(struct ahead *ahead)
{
    if (!ahead->joined) {
        pthread_mutex_lock(&ahead->mutex);
        ahead->stopping = true;
        pthread_cond_signal(&ahead->changed);
        pthread_mutex_unlock(&ahead->mutex);
        pthread_join(ahead->thread, NULL);
    }
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->mutex);
    free(ahead);
}

/* Release the block that was read, if any, and wait for the next one. */
static void turn(struct ahead *ahead, bool release)
{
    pthread_mutex_lock(&ahead->mutex);
    ahead->emptied += release;
    pthread_cond_signal(&ahead->changed);
    while (ahead->filled == ahead->emptied)
        pthread_cond_wait(&ahead->changed, &ahead->mutex);
    pthread_mutex_unlock(&ahead->mutex);
    ahead->next = 0;
}

bool ahead_next(struct ahead *ahead, struct event *event)
{
    if (ahead->joined)
        return false;
    if (ahead->next == 0 && ahead->emptied == 0)
        turn(ahead, false);
    else if (ahead->next == BLOCK_EVENTS)
        turn(ahead, true);
    const struct block *block = &ahead->blocks[ahead->emptied % BLOCKS];
    if (ahead->next < block->count) {
        *event = block->events[ahead->next++].event;
        return true;
    }
    pthread_join(ahead->thread, NULL);
    ahead->joined = true;
    return false;
}
