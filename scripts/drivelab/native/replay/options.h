/* The command line. */
#ifndef DRIVELAB_REPLAY_OPTIONS_H
#define DRIVELAB_REPLAY_OPTIONS_H

#include <stdint.h>

#include "refusal.h"

struct options {
    const char *schedule, *results, *target, *identity;
    uint64_t depth, requests, seed, spin_us; /* requests 0: the whole schedule, once */
    double watchdog_s, runtime_s;            /* runtime 0: no limit */
    int cpu, priority;                       /* -1: any CPU; 0: no real-time priority */
    bool go_on, has_seed, has_spin, possible;
};

bool options_read(struct options *, int argc, char **argv, struct refusal *);

#endif
