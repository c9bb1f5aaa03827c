/* Find numbers that occur more than once, with two bits of memory for each place: numbers may share a place. */
#include <stdbool.h>
#include <stdint.h>

/* Mark the place of each number with `used[i]`; `seen` and `repeated` have `places` bits each, a power of two. */
void repeats_mark(uint64_t rows, const int64_t *numbers, const bool *used, uint64_t places, uint64_t *seen,
                  uint64_t *repeated)
{
    for (uint64_t i = 0; i < rows; i++)
        if (used[i]) {
            uint64_t place = (uint64_t)numbers[i] & (places - 1), bit = UINT64_C(1) << (place & 63);
            repeated[place >> 6] |= seen[place >> 6] & bit;
            seen[place >> 6] |= bit;
        }
}

/* Set `result[i]` for each number with `used[i]` whose place was marked more than once. */
void repeats_find(uint64_t rows, const int64_t *numbers, const bool *used, uint64_t places, const uint64_t *repeated,
                  bool *result)
{
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t place = (uint64_t)numbers[i] & (places - 1);
        result[i] = used[i] && repeated[place >> 6] >> (place & 63) & 1;
    }
}
