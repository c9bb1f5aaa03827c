/* Parse plain numbers of seconds. */
#include <stdint.h>

enum { DECIMALS = 9, MOST_DIGITS = 10 };
static const uint64_t MOST_SECONDS = INT64_MAX / 1000000000 - 1;

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Write ns, and return the number of rows before the first that is not digits, or digits, a point and at most nine
 * digits, or that could exceed 2^63 ns. Text i is [text + offsets[i], text + offsets[i + 1]).
 */
int64_t seconds_parse(int64_t rows, const int32_t *offsets, const char *text, int64_t *ns)
{
    for (int64_t row = 0; row < rows; row++) {
        const char *whole = text + offsets[row], *at = whole, *end = text + offsets[row + 1];
        uint64_t value = 0;
        int left = DECIMALS;
        for (; at < end && is_digit(*at); at++)
            value = value * 10 + (uint64_t)(*at - '0');
        if (at == whole || at - whole > MOST_DIGITS || value > MOST_SECONDS)
            return row;
        if (at < end && *at == '.')
            for (at++; at < end && left && is_digit(*at); at++, left--)
                value = value * 10 + (uint64_t)(*at - '0');
        if (at < end)
            return row;
        for (; left; left--)
            value *= 10;
        ns[row] = (int64_t)value;
    }
    return rows;
}
