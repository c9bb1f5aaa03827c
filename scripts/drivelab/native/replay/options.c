#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>

#define LONGEST_S 1e9
#define MOST_CPUS 1024

enum { SCHEDULE = 1, RESULTS, TARGET, IDENTITY, NVME, DEPTH, WATCHDOG, GO_ON, RUNTIME, THREADS, CPUS,
       POLLED, KERNEL_THREAD, REALTIME, SEED, POSSIBLE };

static const struct option known[] = {
    {"schedule", required_argument, NULL, SCHEDULE}, {"results", required_argument, NULL, RESULTS},
    {"target", required_argument, NULL, TARGET},     {"identity", required_argument, NULL, IDENTITY},
    {"depth", required_argument, NULL, DEPTH},       {"watchdog-s", required_argument, NULL, WATCHDOG},
    {"go-on", no_argument, NULL, GO_ON},             {"runtime-s", required_argument, NULL, RUNTIME},
    {"threads", required_argument, NULL, THREADS},   {"cpus", required_argument, NULL, CPUS},
    {"polled", no_argument, NULL, POLLED},           {"nvme", required_argument, NULL, NVME},
    {"realtime", required_argument, NULL, REALTIME}, {"kernel-thread", no_argument, NULL, KERNEL_THREAD},
    {"seed", required_argument, NULL, SEED},         {"possible", no_argument, NULL, POSSIBLE},
    {NULL, 0, NULL, 0},
};

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

static bool seconds(double *value, const char *name, struct refusal *refusal)
{
    char *end;
    double number = strtod(optarg, &end);
    if (end == optarg || *end || !isfinite(number) || number <= 0 || number > LONGEST_S)
        return refuse(refusal, BAD_COMMAND, "--%s: '%s' is not a number of seconds above 0", name, optarg);
    *value = number;
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
    uint64_t number = 0;
    switch (option) {
    case SCHEDULE: options->schedule = optarg; return true;
    case RESULTS: options->results = optarg; return true;
    case TARGET: options->target = optarg; return true;
    case IDENTITY: options->identity = optarg; return true;
    case NVME: options->nvme = optarg; return true;
    case POLLED: options->polled = true; return true;
    case KERNEL_THREAD: options->kernel_thread = true; return true;
    case DEPTH: return whole(&options->depth, 1, MOST_IN_FLIGHT, name, refusal);
    case WATCHDOG: return seconds(&options->watchdog_s, name, refusal);
    case GO_ON: options->go_on = true; return true;
    case RUNTIME: return seconds(&options->runtime_s, name, refusal);
    case THREADS:
        if (!whole(&number, 1, MOST_THREADS, name, refusal))
            return false;
        options->threads = (unsigned)number;
        return true;
    case CPUS: return cpus(options, refusal);
    case REALTIME:
        if (!whole(&number, 1, 99, name, refusal))
            return false;
        options->priority = (int)number;
        return true;
    case SEED: options->has_seed = true; return whole(&options->seed, 0, UINT64_MAX, name, refusal);
    case POSSIBLE: options->possible = true; return true;
    default: return refuse(refusal, BAD_COMMAND, "an option is unknown or has no value");
    }
}

bool options_read(struct options *options, int argc, char **argv, struct refusal *refusal)
{
    *options = (struct options){.threads = 1};
    for (unsigned i = 0; i < MOST_THREADS; i++)
        options->cpus[i] = -1;
    opterr = 0;
    for (int option, index = 0; (option = getopt_long(argc, argv, "", known, &index)) != -1;)
        if (!take(options, option, known[index].name, refusal))
            return false;
    if (optind < argc)
        return refuse(refusal, BAD_COMMAND, "'%s' is not an option", argv[optind]);
    if (options->possible)
        return true;
    const struct { const void *value; const char *name; } needed[] = {
        {options->schedule, "schedule"}, {options->results, "results"}, {options->target, "target"},
        {options->identity, "identity"}, {options->depth ? "" : NULL, "depth"},
        {options->watchdog_s > 0 ? "" : NULL, "watchdog-s"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].value)
            return refuse(refusal, BAD_COMMAND, "--%s is missing", needed[i].name);
    return true;
}
