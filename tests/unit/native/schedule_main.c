/* Open the schedules on the command line and print the verdict on each. */
#include "files.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct schedule schedule;
        struct refusal refusal;
        puts(schedule_open(&schedule, argv[i], &refusal) ? "accepted" : refusal.message);
    }
    return 0;
}
