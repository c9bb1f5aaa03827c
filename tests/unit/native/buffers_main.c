/* Take and give back room for reads at random; fail if two reads in flight share a byte. */
#include <stdlib.h>
#include <string.h>

#include "buffers.h"

#define ROUNDS 200000

static struct piece pieces[MOST_IN_FLIGHT];
static unsigned char marks[MOST_IN_FLIGHT];

static void fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

static uint32_t length(void)
{
    static const uint32_t lengths[] = {512, 4096, 4096, 4096, 12288, 131072, 131072, 1048576};
    return lengths[rand() % (sizeof lengths / sizeof *lengths)];
}

int main(void)
{
    struct schedule schedule = {.header.block_bytes = 512, .longest[READ] = 1 << 20, .operations[READ] = 1};
    struct buffers buffers;
    struct refusal refusal;
    if (!buffers_make(&buffers, &schedule, 1, &refusal))
        fail(refusal.message);
    const unsigned char *begin = buffers_to_register(&buffers, READ_BUFFER).iov_base;

    size_t reach = 0;
    for (unsigned i = 0; i < 10000; i++) {
        struct piece *piece = &pieces[i % 32];
        buffers_give_back(&buffers, piece);
        *piece = buffers_take_room(&buffers, 4096);
        if ((size_t)(piece->at - begin) + 4096 > reach)
            reach = (size_t)(piece->at - begin) + 4096;
    }
    for (unsigned i = 0; i < 32; i++)
        buffers_give_back(&buffers, &pieces[i]);

    /* Each piece marks the first and last byte of each of its blocks. */
    unsigned registered = 0, unregistered = 0, refused = 0;
    srand(1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned number = (unsigned)rand() % MOST_IN_FLIGHT;
        struct piece *piece = &pieces[number];
        for (uint32_t at = 0; piece->at && at < piece->bytes; at += 512)
            if (piece->at[at] != marks[number] || piece->at[at + 511] != marks[number])
                fail("two reads in flight share memory");
        buffers_give_back(&buffers, piece);
        *piece = buffers_take_room(&buffers, length());
        if (!piece->at) {
            refused++;
            continue;
        }
        piece->registered ? registered++ : unregistered++;
        marks[number] = (unsigned char)(rand() % 255 + 1);
        for (uint32_t at = 0; at < piece->bytes; at += 512)
            piece->at[at] = piece->at[at + 511] = marks[number];
    }
    for (unsigned i = 0; i < MOST_IN_FLIGHT; i++)
        buffers_give_back(&buffers, &pieces[i]);
    const struct pool *pool = &buffers.pools[READ_BUFFER];
    if (memchr(pool->busy, 1, pool->units) || pool->next)
        fail("some memory was not given back");
    printf("registered %u\nunregistered %u\nrefused %u\n", registered, unregistered, refused);
    printf("reach_at_depth_32_bytes %zu\n", reach);
    return 0;
}
