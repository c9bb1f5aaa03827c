#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define LONGEST_S 1e9
#define MOST_CPUS 1024
#define NEEDED 6 /* options, the first ones of the table */

enum { FLAG, SCHEDULE, RESULTS, TARGET, IDENTITY, NVME, DEPTH, WATCHDOG, RUNTIME, THREADS, CPUS, REALTIME, SEED };

static bool whole(uint64_t *value, uint64_t least, uint64_t most, const char *name, struct refusal *refusal)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(optarg, &end, 10);
    if (errno || end == optarg || *end || *optarg == '-' || number < least || number > most)
        return refuse(refusal, BAD_COMMAND, "--%s: '%s' is not a whole number from %llu to %llu", name, optarg,
                      (unsigned long long)least, (unsigned long long)most);
    *value = number;
    return true;
}

static bool seconds(int64_t *ns, const char *name, struct refusal *refusal)
{
    char *end;
    double number = strtod(optarg, &end);
    if (end == optarg || *end || !isfinite(number) || number <= 0 || number > LONGEST_S)
        return refuse(refusal, BAD_COMMAND, "--%s: '%s' is not a number of seconds above 0", name, optarg);
    *ns = (int64_t)ceil(number * 1e9);
    return true;
}

/* One CPU for each thread. */
static bool cpus(struct options *options, struct refusal *refusal)
{
    char *at = optarg;
    for (unsigned i = 0; i < MOST_THREADS; i++) {
        char *end;
        unsigned long cpu = strtoul(at, &end, 10);
        if (end == at || *at == '-' || cpu >= MOST_CPUS || (*end && *end != ','))
            break;
        options->cpus[i] = (int)cpu;
        if (!*end)
            return true;
        at = end + 1;
    }
    return refuse(refusal, BAD_COMMAND, "--cpus: '%s' is not a list of CPUs, such as 0,2", optarg);
}

static bool take(struct options *options, int option, const char *name, struct refusal *refusal)
{
    switch (option) {
    case FLAG: return true;
    case SCHEDULE: options->schedule = optarg; return true;
    case RESULTS: options->results = optarg; return true;
    case TARGET: options->target = optarg; return true;
    case IDENTITY: options->identity = optarg; return true;
    case NVME: options->nvme = optarg; return true;
    case DEPTH: return whole(&options->depth, 1, MOST_IN_FLIGHT, name, refusal);
    case WATCHDOG: return seconds(&options->watchdog_ns, name, refusal);
    case RUNTIME: return seconds(&options->runtime_ns, name, refusal);
    case THREADS: return whole(&options->threads, 1, MOST_THREADS, name, refusal);
    case CPUS: return cpus(options, refusal);
    case REALTIME: return whole(&options->priority, 1, 99, name, refusal);
    case SEED: return whole(&options->seed, 0, UINT64_MAX, name, refusal);
    default: return refuse(refusal, BAD_COMMAND, "an option is unknown or has no value");
    }
}

bool options_read(struct options *options, int argc, char **argv, struct refusal *refusal)
{
    *options = (struct options){.threads = 1, .runtime_ns = INT64_MAX};
    memset(options->cpus, -1, sizeof options->cpus);
    if (getrandom(&options->seed, sizeof options->seed, 0) != sizeof options->seed)
        return refuse(refusal, BAD_HOST, "cannot get random numbers from the kernel (%s)", strerror(errno));
    const struct option known[] = {
        {"schedule", required_argument, NULL, SCHEDULE}, {"results", required_argument, NULL, RESULTS},
        {"target", required_argument, NULL, TARGET},     {"identity", required_argument, NULL, IDENTITY},
        {"depth", required_argument, NULL, DEPTH},       {"watchdog-s", required_argument, NULL, WATCHDOG},
        {"nvme", required_argument, NULL, NVME},         {"runtime-s", required_argument, NULL, RUNTIME},
        {"threads", required_argument, NULL, THREADS},   {"cpus", required_argument, NULL, CPUS},
        {"realtime", required_argument, NULL, REALTIME}, {"seed", required_argument, NULL, SEED},
        {"go-on", no_argument, &options->go_on, 1},      {"possible", no_argument, &options->possible, 1},
        {"polled", no_argument, &options->polled, 1},    {"kernel-thread", no_argument, &options->kernel_thread, 1},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    bool given[sizeof known / sizeof *known] = {false};
    for (int option, index = 0; (option = getopt_long(argc, argv, "", known, &index)) != -1; given[index] = true)
        if (!take(options, option, known[index].name, refusal))
            return false;
    if (optind < argc)
        return refuse(refusal, BAD_COMMAND, "'%s' is not an option", argv[optind]);
    if (options->possible)
        return true;
    for (unsigned i = 0; i < NEEDED; i++)
        if (!given[i])
            return refuse(refusal, BAD_COMMAND, "--%s is missing", known[i].name);
    return true;
}
