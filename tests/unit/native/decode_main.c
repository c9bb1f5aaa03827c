/* Decode the files on the command line and print the number of requests and corrections. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "matcher.h"

#define ROWS 1024

struct decoder;
struct decoder *decoder_open(const char *const *paths, unsigned count, uint64_t first_sector, uint32_t device,
                             bool from_dispatch, const struct correction *corrections, uint64_t correction_count);
void decoder_close(struct decoder *);
bool decoder_name(struct decoder *, uint32_t pid, const char *name);
int64_t decoder_next(struct decoder *, void *const *columns, uint64_t capacity);
const struct correction *decoder_corrections(const struct decoder *, uint64_t *count);

int main(int argc, char **argv)
{
    void *columns[21];
    for (unsigned i = 0; i < 21; i++)
        columns[i] = calloc(ROWS, 8);
    struct decoder *decoder = decoder_open((const char *const *)argv + 1, (unsigned)argc - 1, 0, 1u << 20,
                                           getenv("FROM_DISPATCH") != NULL, NULL, 0);
    if (!decoder)
        return 1;
    decoder_name(decoder, 1, "a name that is longer than a process may have");
    int64_t rows, sum = 0;
    while ((rows = decoder_next(decoder, columns, ROWS)) > 0)
        sum += rows;
    uint64_t corrections;
    decoder_corrections(decoder, &corrections);
    printf("%" PRId64 " requests, %" PRIu64 " corrections%s\n", sum, corrections, rows < 0 ? ", then no record" : "");
    decoder_close(decoder);
    for (unsigned i = 0; i < 21; i++)
        free(columns[i]);
    return 0;
}
